"""The modules that `_absent.py` serves and the names in each.

Name, name      a class, a function: using it raises NotImplementedError
name?           a function that answers False
name@           a decorator that returns the function it is given
Name{A,B}       an enumeration
name=x.y        what Rushlight has under another name, or the module typing
name=1, =False  a setting, which can be read and set and changes nothing
*               every other name: a function that raises NotImplementedError
"""

from __future__ import annotations

MODULES: dict[str, str] = {}


def _modules(text: str) -> None:
    """Reads lines `module: names`; an indented line goes on with the names of the one before."""
    for line in text.strip().splitlines():
        if line[0] != " ":
            name, _, line = line.partition(":")
        MODULES[name] = f"{MODULES.get(name, '')} {line}"


# Names in torch itself.
TOP_LEVEL = """AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FutureType
    IntType InterfaceType ListType NoneType NumberType OptionalType PyObjectType StringType TensorType
    TupleType UnionType Event FloatType Stream SymBool SymFloat SymInt
    _make_per_tensor_quantized_tensor
    _nested_compute_contiguous_strides_offsets _nested_view_from_buffer _scaled_mm quantize_per_channel
    quantize_per_tensor
    per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
    per_tensor_symmetric quint2x4 quint4x2 _scaled_mm_v2 QInt32Storage QInt8Storage QUInt2x4Storage
    QUInt4x2Storage QUInt8Storage
    while_loop"""

# Tensors with a mask of their own.
_modules("""
masked.maskedtensor: MaskedTensor as_masked_tensor is_masked_tensor? masked_tensor
masked.maskedtensor.core: MaskedTensor is_masked_tensor?
masked.maskedtensor.creation: as_masked_tensor masked_tensor
masked._ops: _canonical_dim=masked._canonical_dim _combine_input_and_mask=masked._combine_input_and_mask
    _input_mask=masked._input_mask _output_mask=masked._output_mask
    _reduction_identity=masked._reduction_identity _where=masked._where amax=masked.amax
    amin=masked.amin argmax=masked.argmax argmin=masked.argmin cumprod=masked.cumprod
    cumsum=masked.cumsum log_softmax=masked.log_softmax logaddexp=masked.logaddexp
    logsumexp=masked.logsumexp mean=masked.mean median=masked.median norm=masked.norm
    normalize=masked.normalize prod=masked.prod softmax=masked.softmax softmin=masked.softmin
    std=masked.std sum=masked.sum var=masked.var
""")

# Old homes of torch.func, and what of functorch's inner life has none here.
_modules("""
_functorch:
_functorch.apis: grad=func.grad grad_and_value=func.grad_and_value vmap=func.vmap
    chunk_vmap=func._vmap.chunk_vmap
_functorch.eager_transforms: _slice_argnums=func._derivatives.slice_argnums
    _as_tuple=func._derivatives.as_tuple grad=func.grad grad_and_value=func.grad_and_value
    hessian=func.hessian jacfwd=func.jacfwd jacrev=func.jacrev jvp=func.jvp linearize=func.linearize
    vjp=func.vjp
    functionalize=func.functionalize tree_flatten=func._levels.tree_flatten tree_map=func._levels.tree_map
    tree_unflatten=func._levels.tree_unflatten vmap=func.vmap
_functorch.utils: enable_single_level_autograd_function=func._allowed.enable_single_level_autograd_function
    argnums_t=func._stack.argnums_t unwrap_dead_wrappers=func._stack.unwrap_dead_wrappers
_functorch.vmap: Tensor=Tensor restore_vmap=func._vmap.restore_vmap vmap=func.vmap
    _add_batch_dim=func._stack._add_batch_dim _remove_batch_dim=func._stack._remove_batch_dim
    _broadcast_to_and_flatten=utils._pytree._broadcast_to_and_flatten tree_flatten=utils._pytree.tree_flatten
    tree_unflatten=utils._pytree.tree_unflatten tree_map_=utils._pytree.tree_map_
    _create_batched_inputs=func._vmap._create_batched_inputs _get_name=func._vmap.name_of
    _maybe_remove_batch_dim=func._vmap._maybe_remove_batch_dim
    _process_batched_inputs=func._vmap._process_batched_inputs
    _check_randomness_arg=func._vmap._check_randomness vmap_impl=func._vmap.vmap_impl
    _unwrap_batched=func._vmap._unwrap_batched
_functorch.deprecated: combine_state_for_ensemble=func._deprecated.combine_state_for_ensemble
    functionalize=func._deprecated.functionalize grad=func._deprecated.grad
    grad_and_value=func._deprecated.grad_and_value hessian=func._deprecated.hessian
    jacfwd=func._deprecated.jacfwd jacrev=func._deprecated.jacrev jvp=func._deprecated.jvp
    make_functional=func._deprecated.make_functional
    make_functional_with_buffers=func._deprecated.make_functional_with_buffers vjp=func._deprecated.vjp
    vmap=func._deprecated.vmap
_functorch.make_functional: FunctionalModule=func._made_functional.FunctionalModule
    FunctionalModuleWithBuffers=func._made_functional.FunctionalModuleWithBuffers
    make_functional=func._made_functional.make_functional
    make_functional_with_buffers=func._made_functional.make_functional_with_buffers
    combine_state_for_ensemble=func._made_functional.combine_state_for_ensemble
    extract_weights=func._made_functional.extract_weights
    extract_buffers=func._made_functional.extract_buffers load_weights=func._made_functional.load_weights
    load_buffers=func._made_functional.load_buffers load_state=func._made_functional.load_state
    transpose_stack=func._made_functional.transpose_stack
    create_names_map=func._made_functional.create_names_map
    raise_parameter_tying_error=func._made_functional.raise_parameter_tying_error
    functional_init=func._made_functional.functional_init
    functional_init_with_buffers=func._made_functional.functional_init_with_buffers
_functorch.functional_call: functional_call=nn.utils.stateless.func_functional_call
    stack_module_state=func._modules.stack_module_state
    construct_stacked_leaf=func._modules.construct_stacked_leaf
_functorch.batch_norm_replacement:
    replace_all_batch_norm_modules_=func._modules.replace_all_batch_norm_modules_
    batch_norm_without_running_stats=func._modules.batch_norm_without_running_stats
_functorch.autograd_function: VmapInfo=func._function.VmapInfo CtxCustomSave=func._function.CtxCustomSave
    WrappedCtx=func._parts.WrappedCtx CtxWithSavedTensors=func._parts.CtxWithSavedTensors
    NO_OUT_DIMS=func._parts.NO_OUT_DIMS reductify=func._parts.reductify
    reductify_leaf=func._parts.reductify_leaf has_overridden_vmap_rule=func._parts.has_overridden_vmap_rule
    enable_single_level_autograd_function=func._allowed.enable_single_level_autograd_function
    validate_vmap_returns_tuple_of_two_elements=func._parts.validate_vmap_returns_tuple_of_two_elements *
_functorch.pyfunctorch: FuncTorchInterpreter=func._interpreters.FuncTorchInterpreter
    FunctionalizeInterpreter=func._interpreters.FunctionalizeInterpreter
    GradInterpreter=func._interpreters.GradInterpreter
    JvpInterpreter=func._interpreters.JvpInterpreter
    VmapInterpreter=func._interpreters.VmapInterpreter
    coerce_cinterpreter=func._interpreters.coerce_cinterpreter
    compare_functorch_state=func._interpreters.compare_functorch_state
    dispatch_functorch=func._interpreters.dispatch_functorch
    nested=func._interpreters.nested
    retrieve_all_functorch_interpreters=func._interpreters.retrieve_all_functorch_interpreters
    retrieve_current_functorch_interpreter=func._interpreters.retrieve_current_functorch_interpreter
    temporarily_clear_interpreter_stack=func._interpreters.temporarily_clear_interpreter_stack
    temporarily_pop_interpreter_stack=func._interpreters.temporarily_pop_interpreter_stack
    CInterpreter=func._stack.CInterpreter TransformType=func._stack.TransformType
    RandomnessType=func._stack.RandomnessType
_functorch.python_key: make_fx pythonkey_decompose
_functorch.config: functionalize_rng_ops=False fake_tensor_allow_meta=False donated_buffer=False
    check_custom_op_aliasing=True error_on_custom_op_aliasing=False
    activation_memory_budget=1 patch=_compile.patch
_functorch.aot_autograd: *
_decomp: *
_functorch.compilers: *
_functorch.fx_minifier: minifier
_functorch.partitioners: *
_functorch.package: make_fx FunctionalModule=func._made_functional.FunctionalModule
    FunctionalModuleWithBuffers=func._made_functional.FunctionalModuleWithBuffers
    combine_state_for_ensemble=func._deprecated.combine_state_for_ensemble
    functionalize=func._deprecated.functionalize
    grad=func._deprecated.grad
    grad_and_value=func._deprecated.grad_and_value
    hessian=func._deprecated.hessian
    jacfwd=func._deprecated.jacfwd
    jacrev=func._deprecated.jacrev
    jvp=func._deprecated.jvp
    make_functional=func._deprecated.make_functional
    make_functional_with_buffers=func._deprecated.make_functional_with_buffers
    vjp=func._deprecated.vjp
    vmap=func._deprecated.vmap
_functorch.package.experimental: chunk_vmap=func._vmap.chunk_vmap functionalize=func.functionalize
    hessian=func.hessian jacfwd=func.jacfwd jvp=func.jvp
    replace_all_batch_norm_modules_=func._modules.replace_all_batch_norm_modules_
_functorch.package.experimental.control_flow: cond map
_functorch.package.experimental.ops: HigherOrderOperator=_higher_order.HigherOrderOperator
_functorch.package.compile: *
_C._functorch: TransformType=func._stack.TransformType RandomnessType=func._stack.RandomnessType
    CInterpreter=func._stack.CInterpreter is_functorch_wrapped_tensor=func._stack.is_functorch_wrapped_tensor
    is_batchedtensor=func._stack.is_batchedtensor is_gradtrackingtensor=func._stack.is_gradtrackingtensor
    is_dead_tensor_wrapper=func._stack.is_dead_tensor_wrapper
    is_functionaltensor=func._stack.is_functionaltensor
    is_legacy_batchedtensor=func._stack.is_legacy_batchedtensor maybe_get_level=func._stack.maybe_get_level
    maybe_get_bdim=func._stack.maybe_get_bdim get_unwrapped=func._stack.get_unwrapped
    unwrap_if_dead=func._stack.unwrap_if_dead get_interpreter_stack=func._stack.get_interpreter_stack
    peek_interpreter_stack=func._stack.peek_interpreter_stack
    get_dynamic_layer_stack_depth=func._stack.get_dynamic_layer_stack_depth
    maybe_current_level=func._stack.maybe_current_level current_level=func._stack.current_level
    _grad_increment_nesting=func._stack._grad_increment_nesting
    _grad_decrement_nesting=func._stack._grad_decrement_nesting
    _jvp_increment_nesting=func._stack._jvp_increment_nesting
    _jvp_decrement_nesting=func._stack._jvp_decrement_nesting
    _vmap_increment_nesting=func._stack._vmap_increment_nesting
    _vmap_decrement_nesting=func._stack._vmap_decrement_nesting _wrap_for_grad=func._stack._wrap_for_grad
    _unwrap_for_grad=func._stack._unwrap_for_grad _add_batch_dim=func._stack._add_batch_dim
    _remove_batch_dim=func._stack._remove_batch_dim
    get_inplace_requires_grad_allowed=func._stack.get_inplace_requires_grad_allowed
    set_inplace_requires_grad_allowed=func._stack.set_inplace_requires_grad_allowed
    get_single_level_autograd_function_allowed=func._stack.get_single_level_autograd_function_allowed
    set_single_level_autograd_function_allowed=func._stack.set_single_level_autograd_function_allowed
    reshape_dim_into=func._stack.reshape_dim_into reshape_dim_outof=func._stack.reshape_dim_outof
    _is_vmap_fallback_enabled=func._stack._is_vmap_fallback_enabled
    _set_vmap_fallback_enabled=func._stack._set_vmap_fallback_enabled
    _set_vmap_fallback_warning_enabled=func._stack._set_vmap_fallback_warning_enabled
""")

# The old names of what is in torch.hub.
_modules("""
utils.model_zoo: load_url=hub.load_state_dict_from_url tqdm=hub.tqdm
""")

# Compilers and graph capture.
_modules("""
_dynamo: OptimizedModule=nn._optimized.OptimizedModule allow_in_graph@ assume_constant_result@ disable@
    disallow_in_graph@ explain export forbid_in_graph@ graph_break is_compiling? is_dynamo_supported?
    is_inductor_supported? list_backends=compiler.list_backends mark_dynamic! mark_static!
    mark_static_address! maybe_mark_dynamic! nonstrict_trace@ optimize@ optimize_assert@ register_backend
    reset=compiler.reset reset_code_caches=compiler.reset run@ set_stance=compiler.set_stance skip_frame
_dynamo.config: suppress_errors=False compiled_autograd=False recompile_limit=8 cache_size_limit=8
    accumulated_recompile_limit=256 accumulated_cache_size_limit=256 log_compilation_metrics=True
    issue_3_13_0_warning=False capture_scalar_outputs=False capture_dynamic_output_shape_ops=False
    assume_static_by_default=True automatic_dynamic_shapes=True force_parameter_static_shapes=True
    specialize_float=False specialize_int=False verbose=False error_on_recompile=False optimize_ddp=True
    disable=False
    inline_inbuilt_nn_modules=True guard_nn_modules=True allow_rnn=False patch=_compile.patch
_dynamo.compiled_autograd: _disable reset=compiler.reset enable
_dynamo.testing: CompileCounter CompileCounterWithBackend EagerAndRecordGraphs make_test_cls_with_patches
    rand_strided same
_dynamo.trace_rules: _as_posix_path=_compile.posix_path
_dynamo.decorators: disable@ mark_dynamic! mark_static! mark_static_address! maybe_mark_dynamic!
_dynamo.eval_frame: OptimizedModule=nn._optimized.OptimizedModule is_dynamo_supported? set_eval_frame
_dynamo.exc: BackendCompilerFailed TensorifyScalarRestartAnalysis TorchDynamoException Unsupported
_dynamo.external_utils: is_compiling?
_dynamo.utils: clone_input=_compile.clone_input counters is_compile_supported? LazyString=_logging.LazyString
    warn_once=_compile.warn_once
_dynamo._trace_wrapped_higher_order_op: TransformGetItemToIndex
_guards: CompileContext TracingContext active_fake_mode=_compile.no_fake_mode
    detect_fake_mode=_compile.no_fake_mode
_higher_order_ops: InvokeQuant *
_higher_order_ops.flex_attention: *
_higher_order_ops.inline_asm_elementwise: *
_higher_order_ops.invoke_subgraph: mark_compile_region@ *
_higher_order_ops.out_dtype: OutDtypeOperator *
_higher_order_ops.register_hook: *
_higher_order_ops.map: *
_library: *
_library.custom_ops: CustomOpDef=library.CustomOpDef *
_library.utils: parse_namespace=_library_utils.parse_namespace lookup_op=_library_utils.lookup_op
    is_builtin=_library_utils.is_builtin is_out=_library_utils.is_out is_inplace=_library_utils.is_inplace
    is_functional_schema=_library_utils.is_functional_schema fill_defaults=_library_utils.fill_defaults
    mutates_and_returns_first_arg=_library_utils.mutates_and_returns_first_arg
    zip_schema=_library_utils.zip_schema has_kwarg_only_args=_library_utils.has_kwarg_only_args
    has_kwarg_only_tensors=_library_utils.has_kwarg_only_tensors get_source=_library_utils.get_source
    has_tensor_arg=_library_utils.has_tensor_arg get_device_arg_index=_library_utils.get_device_arg_index
    mutated_args_kwargs=_library_utils.mutated_args_kwargs *
_library.autograd: supports_tensorlist=_tensor_lists.supports_tensorlist
    not_list_of_tensor=_tensor_lists.not_list_of_tensor
    not_list_of_optional_tensor=_tensor_lists.not_list_of_optional_tensor *
_library.infer_schema: infer_schema=library.infer_schema tuple_to_list=_schema.tuple_to_list *
_library.fake_profile: MissingOpProfile OpProfile TensorMetadata *
utils._helion: has_helion? has_helion_package?
utils._pallas: has_pallas? has_pallas_package? has_tpu_pallas? has_cpu_pallas? has_cuda_pallas?
utils._config_module: Config ConfigModule *
ao.pruning: BaseSparsifier *
_subclasses.schema_check_mode: SchemaCheckMode
_inductor: compile cudagraph_mark_step_begin=compiler.cudagraph_mark_step_begin list_mode_options
    list_options standalone_compile
_inductor.config: cpp_wrapper=False fallback_random=False size_asserts=True freezing=False
    max_autotune=False triton=_compile.no_settings patch=_compile.patch
_inductor.utils: GPU_TYPES=_compile.GPU_TYPES get_gpu_type=_compile.gpu_type *
_inductor.async_compile: AsyncCompile *
_inductor.codecache: CppCodeCache=_compile.CppCodeCache *
_inductor.exc: InvalidCxxCompiler=_compile.CompileError CppCompileError=_compile.CompileError
_inductor.decomposition: register_decomposition@ *
_inductor.codegen:
_inductor.codegen.common: *
_inductor.codegen.wrapper: PythonWrapperCodegen *
_inductor.compile_fx: *
_inductor.graph: GraphLowering *
_inductor.custom_graph_pass: *
_inductor.fx_passes: *
_inductor.fx_passes.pad_mm: *
_dynamo.backends: *
_dynamo.backends.registry: *
_dynamo.backends.common: *
_dynamo.test_case: TestCase=_dynamo_testing.TestCase run_tests=_dynamo_testing.run_tests *
_dispatch: *
_dispatch.python: *
_prims.context: TorchRefsMode *
_prims.executor: *
_prims_common.wrappers: *
_subclasses.fake_utils: *
jit._logging: *
_export:
_export.wrappers: mark_subclass_constructor_exportable_experimental@ mark_subclass_constructor_exportable@
_higher_order_ops.associative_scan: associative_scan
_higher_order_ops.cond: cond_op
_lazy: *
_lazy.metrics: *
_lazy.ts_backend: *
_logging.scribe: open_source_signpost=_compile.no_signpost
_native:
_native.dsl_registry: dsl_registry=_compile.dsl_registry
_native.ops:
_native.ops.topk:
_native.ops.topk.cutedsl_impl: _RADIX_MIN_N_MULTIPLIER=1 _REGISTER_N_RANGE=_compile.no_range
_prims: utils=_prims_common *
_utils_internal: get_writable_path=_compile.writable_path get_file_path=_compile.file_path
    get_file_path_2=_compile.joined_path log_export_usage
_C._profiler: gather_traceback=profiler._traceback.gather_traceback
    symbolize_tracebacks=profiler._traceback.symbolize_tracebacks
    CapturedTraceback=profiler._traceback.CapturedTraceback
    ProfilerActivity=_numbered.ProfilerActivity ActiveProfilerType=_numbered.ActiveProfilerType
    RecordScope=_numbered.RecordScope _ExperimentalConfig=profiler._config._ExperimentalConfig
    _RecordFunctionFast=profiler._config._RecordFunctionFast ProfilerState=_numbered.ProfilerState
    ProfilerConfig=profiler._switches.ProfilerConfig _EventType=_numbered._EventType
    _ProfilerEvent=profiler._results._ProfilerEvent
    _TensorMetadata _NNModuleInfo _OptimizerInfo _PyFrameState
    _ExtraFields_Allocation=profiler._results._ExtraFields_Allocation
    _ExtraFields_Backend _ExtraFields_Kineto _ExtraFields_OutOfMemory
    _ExtraFields_PyCCall _ExtraFields_PyCall _ExtraFields_Vulkan
    _ExtraFields_TorchOp=profiler._results._ExtraFields_TorchOp
    _set_cuda_sync_enabled_val _set_fwd_bwd_enabled_val _set_record_concrete_inputs_enabled_val
profiler._utils: BasicEvaluation ContextStackEntry EventKey EventMetrics Interval TimelineEvent argmax
    index_of_first_match map_recorded_events_to_aten_ops_with_stack_trace source_code_location _traverse
    traverse_bfs traverse_dfs
profiler._pattern_matcher: Conv2dBiasFollowedByBatchNorm2dPattern ExtraCUDACopyPattern FP32MatMulPattern
    ForLoopIndexingPattern GradNotSetToNonePattern MatMulDimInFP16Pattern NamePattern
    OptimizerSingleTensorPattern Pattern SynchronizedDataLoaderPattern input_dtypes input_shapes
    report_all_anti_patterns source_code_location
profiler._memory_profiler: Action Category CategoryDict CategoryElement DataFlowEdge DataFlowGraph
    DataFlowNode Key MemoryProfile MemoryProfileTimeline OpTree SchemaMatcher SizeMap TensorKey
    extract_gradients extract_parameters get_scopes
utils.backend_registration: generate_methods_for_privateuse1_backend rename_privateuse1_backend
_inductor.codecache: extract_tensor_metadata_for_cache_key
_inductor.cpu_vec_isa: pick_vec_isa
_inductor.runtime:
_inductor.runtime.cache_dir_utils: cache_dir
_jit_internal: BroadcastingList1 BroadcastingList2 BroadcastingList3 Final=jit.Final
    _copy_to_script_wrapper@ _overload@ _overload_method@ boolean_dispatch export@ ignore@ is_scripting?
    unused@
_prims_common: alert_not_deterministic is_contiguous_or_false dtype_to_type=_compile.dtype_to_type
    elementwise_dtypes=_promotion.elementwise_dtypes
    ELEMENTWISE_TYPE_PROMOTION_KIND=_promotion.ELEMENTWISE_TYPE_PROMOTION_KIND *
_subclasses: FakeTensor FakeTensorMode UnsupportedFakeTensorException
_subclasses.fake_tensor: FakeTensor FakeTensorConverter FakeTensorMode is_fake?
    unset_fake_temporarily=_compile.unset_fake _is_tensor_constructor=_dispatching.is_tensor_constructor
_subclasses.functional_tensor: FunctionalTensor FunctionalTensorMode mb_unwrap_functional_tensor
_subclasses.meta_utils: MetaConverter is_sparse_any?
export: Dim ExportGraphSignature ExportedProgram ShapesCollection UnflattenedModule default_decompositions
    draft_export export load register_dataclass save unflatten
export._trace:
export.decomp_utils: CustomDecompTable
export.unflatten: InterpreterModule
fx._pytree: register_pytree_flatten_spec! tree_flatten_spec
fx.experimental:
fx.experimental.proxy_tensor: get_innermost_proxy_mode? get_proxy_mode? is_sym_node? make_fx
    maybe_disable_thunkify maybe_enable_thunkify
fx.experimental.symbolic_shapes: GuardOnDataDependentSymNode ShapeEnv free_symbols free_unbacked_symbols
    guard_or_false guard_or_true guard_size_oblivious has_static_value is_symbolic? statically_known_true
    is_nested_int?
fx.passes.infra:
fx.passes.infra.pass_base: PassBase PassResult
fx.traceback: preserve_node_meta
nn.attention.flex_attention: _DEFAULT_SPARSE_BLOCK_SIZE=128 AuxOutput AuxRequest BlockMask FlexKernelOptions
    and_masks create_block_mask _create_empty_block_mask
    create_mask flex_attention noop_mask or_masks
onnx: ExportableModule ONNXProgram OnnxExporterError OperatorExportTypes{ONNX,ONNX_ATEN,ONNX_ATEN_FALLBACK}
    TensorProtoDataType TrainingMode{EVAL,PRESERVE,TRAINING} export is_in_onnx_export?
    register_custom_op_symbolic! unregister_custom_op_symbolic!
onnx.errors: OnnxExporterError SymbolicValueError UnsupportedOperatorError
onnx.operators: reshape_from_tensor_shape shape_as_tensor=_shape_as_tensor
onnx.symbolic_helper: cast_pytorch_to_onnx parse_args@ quantized_args@
onnx.symbolic_opset9: _prepare_onnx_paddings=_onnx._prepare_onnx_paddings masked_fill softmax
onnx.symbolic_opset11: select squeeze unsqueeze
onnx.symbolic_opset12: dropout
onnx.utils: export register_custom_op_symbolic!
package: PackageExporter PackageImporter
sparse._semi_structured_conversions: *
sparse._semi_structured_ops: *
sparse._triton_ops: *
sparse._triton_ops_meta: *
sparse.semi_structured: SparseSemiStructuredTensor=sparse.SparseSemiStructuredTensor
    SparseSemiStructuredTensorCUSPARSELT=sparse.SparseSemiStructuredTensorCUSPARSELT
    SparseSemiStructuredTensorCUTLASS=sparse.SparseSemiStructuredTensorCUTLASS
    to_sparse_semi_structured=sparse.to_sparse_semi_structured
jit._recursive: concrete_type_store *
jit.frontend: *
jit.annotations: BroadcastingList1 BroadcastingList2 BroadcastingList3 Any=typing.Any Dict=typing.Dict
    List=typing.List Optional=typing.Optional Tuple=typing.Tuple Union=typing.Union
jit.mobile:
jit.quantized:
utils.bundled_inputs: augment_model_with_bundled_inputs bundle_inputs
utils.mobile_optimizer: LintCode{BUNDLED_INPUT,REQUIRES_GRAD,DROPOUT,BATCHNORM} optimize_for_mobile
utils.data.graph_settings: apply_random_seed apply_sharding apply_shuffle_settings
utils._sympy:
utils._sympy.numbers: IntInfinity
utils._sympy.value_ranges: ValueRanges
""")

# Several processes.
_modules("""
_C._distributed_c10d: FakeProcessGroup ProcessGroup=distributed.ProcessGroup Reducer Store=distributed.Store
    Work=distributed.Work
_C._distributed_rpc: PyRRef _is_current_rpc_agent_set?
distributed._composable: checkpoint contract fully_shard replicate
distributed._composable.fsdp: FSDPModule MixedPrecisionPolicy OffloadPolicy CPUOffloadPolicy fully_shard
distributed._functional_collectives: AsyncCollectiveTensor all_gather_tensor all_reduce
    all_to_all_single_autograd reduce_scatter_tensor wait_tensor
distributed._shard:
distributed._shard.sharded_tensor: ShardedTensor
distributed._tensor: DTensor DeviceMesh Partial Placement Replicate Shard distribute_module
    distribute_tensor init_device_mesh
distributed._tensor.api: DTensor
distributed._tensor.device_mesh: DeviceMesh init_device_mesh
distributed._tensor.experimental: implicit_replication
distributed._tensor.placement_types: Partial Placement Replicate Shard
distributed.algorithms:
distributed.algorithms._checkpoint:
distributed.algorithms._checkpoint.checkpoint_wrapper: CheckpointImpl{REENTRANT,NO_REENTRANT}
    CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper
distributed.algorithms.ddp_comm_hooks: DDPCommHookType register_ddp_comm_hook
distributed.algorithms.ddp_comm_hooks.debugging_hooks: noop_hook
distributed.algorithms.ddp_comm_hooks.default_hooks: allreduce_hook bf16_compress_hook bf16_compress_wrapper
    fp16_compress_hook fp16_compress_wrapper
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: PostLocalSGDState post_localSGD_hook
distributed.algorithms.ddp_comm_hooks.powerSGD_hook: PowerSGDState batched_powerSGD_hook powerSGD_hook
distributed.algorithms.join: Join JoinHook Joinable
distributed.algorithms.model_averaging:
distributed.algorithms.model_averaging.averagers: ModelAverager PeriodicModelAverager
distributed.autograd: DistAutogradContext backward context get_gradients is_available?
distributed.checkpoint: CheckpointException DefaultLoadPlanner DefaultSavePlanner FileSystemReader
    FileSystemWriter LoadPlanner Metadata SavePlanner StorageReader StorageWriter async_save load
    load_state_dict save save_state_dict
distributed.checkpoint._consolidate_hf_safetensors: consolidate_safetensors_files
distributed.checkpoint.default_planner: DefaultLoadPlanner DefaultSavePlanner
distributed.checkpoint.filesystem: FileSystemReader FileSystemWriter
distributed.checkpoint.format_utils: _EmptyStateDictLoadPlanner _load_state_dict dcp_to_torch_save
    torch_save_to_dcp
distributed.checkpoint.hf_storage: HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.checkpoint.metadata: Metadata
distributed.checkpoint.optimizer: load_sharded_optimizer_state_dict
distributed.checkpoint.state_dict: StateDictOptions=_model_states.StateDictOptions
    get_model_state_dict=_model_states.get_model_state_dict
    get_optimizer_state_dict=_model_states.get_optimizer_state_dict
    get_state_dict=_model_states.get_state_dict set_model_state_dict=_model_states.set_model_state_dict
    set_optimizer_state_dict=_model_states.set_optimizer_state_dict
    set_state_dict=_model_states.set_state_dict
distributed.checkpoint.state_dict_loader: _load_state_dict load
distributed.checkpoint.stateful: Stateful
distributed.constants: default_pg_timeout=distributed.default_pg_timeout
distributed.distributed_c10d: Backend=distributed.Backend GroupMember=distributed.GroupMember
    PrefixStore=distributed.PrefixStore ProcessGroup=distributed.ProcessGroup ReduceOp=distributed.ReduceOp
    Store=distributed.Store Work=distributed.Work _get_default_group _new_process_group_helper
    default_pg_timeout=distributed.default_pg_timeout get_rank=distributed.get_rank
    is_initialized=distributed.is_initialized is_nccl_available=distributed.is_nccl_available
    is_xccl_available=distributed.is_xccl_available rendezvous
distributed.device_mesh: DeviceMesh _mesh_resources init_device_mesh
distributed.elastic:
distributed.elastic.agent:
distributed.elastic.agent.server:
distributed.elastic.agent.server.api: WorkerState
distributed.elastic.multiprocessing: Std start_processes
distributed.elastic.multiprocessing.errors: ChildFailedError ErrorHandler ProcessFailure get_error_handler
    record@
distributed.fsdp: BackwardPrefetch{BACKWARD_PRE,BACKWARD_POST} CPUOffload CPUOffloadPolicy
    DataParallelMeshDims FSDPModule FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel
    LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy
    OptimStateDictConfig OptimStateKeyType{PARAM_NAME,PARAM_ID} ShardedOptimStateDictConfig
    ShardedStateDictConfig
    ShardingStrategy{FULL_SHARD,SHARD_GRAD_OP,NO_SHARD,HYBRID_SHARD,_HYBRID_SHARD_ZERO2} StateDictConfig
    StateDictSettings StateDictType{FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT} UnshardHandle
    fully_shard register_fsdp_forward_method share_comm_ctx
distributed.fsdp.sharded_grad_scaler: ShardedGradScaler
distributed.fsdp.wrap: CustomPolicy ModuleWrapPolicy _or_policy _recursive_wrap always_wrap_policy
    enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
distributed.launcher:
distributed.launcher.api: LaunchConfig elastic_launch launch_agent
distributed.nn: RemoteModule all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter
distributed.nn.functional: all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter
distributed.optim: DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer as_functional_optim
distributed.pipelining: Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B
    SplitPoint{BEGINNING,END} build_stage pipe_split pipeline
distributed.rpc: BackendType{TENSORPIPE} RRef RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo
    get_worker_info init_rpc is_available? remote rpc_async rpc_sync shutdown
distributed.rpc.api: _all_gather _barrier _require_initialized@
distributed.run: config_from_args get_args_parser main parse_args run
distributed.tensor: DTensor DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor
    empty full ones rand randn zeros
distributed.tensor._utils: compute_local_shape_and_global_offset
distributed.tensor.device_mesh: DeviceMesh init_device_mesh
distributed.tensor.experimental: context_parallel implicit_replication local_map register_sharding
distributed.tensor.experimental._attention: set_rotate_method
distributed.tensor.parallel: ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput
    PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel parallelize_module
distributed.tensor.placement_types: Partial Placement Replicate Shard _StridedShard
distributed.utils: _sync_module_states
numa:
numa.binding: AffinityMode{NODE,SOCKET,EXCLUSIVE,CORE_COMPLEX} NumaOptions
""")

# GPUs.
_modules("""
cuda.memory: CUDAPluggableAllocator MemPool caching_allocator_alloc memory_snapshot memory_summary
cuda.profiler: init profile start stop
cuda.random: get_rng_state=cuda.get_rng_state get_rng_state_all=cuda.get_rng_state_all
    manual_seed=cuda.manual_seed manual_seed_all=cuda.manual_seed_all set_rng_state=cuda.set_rng_state
    set_rng_state_all=cuda.set_rng_state_all
cuda.streams: Event=cuda.Event Stream=cuda.Stream
cuda.graphs: CUDAGraph=cuda.CUDAGraph graph=cuda.graph
""")

# The same names under the file that defines them.
MODULES["distributed.fsdp.api"] = MODULES["distributed.fsdp.fully_sharded_data_parallel"] = " ".join(
    f"{entry.partition('{')[0]}=distributed.fsdp.{entry.partition('{')[0]}"
    for entry in MODULES["distributed.fsdp"].split()
)

# Quantised, nested and other tensors.
_modules("""
nn.attention.varlen: AuxRequest varlen_attn varlen_attn_out
nn.backends:
nn.backends.thnn: _get_thnn_function_backend
nn.cpp: ModuleWrapper OrderedDictWrapper
nn.intrinsic: *
nn.qat: *
nn.quantizable: *
nn.quantized: *
utils.mkldnn: MkldnnBatchNorm MkldnnConv1d MkldnnConv2d MkldnnConv3d MkldnnLinear MkldnnPrelu to_mkldnn
ao:
ao.nn:
ao.nn.qat:
ao.nn.qat.modules:
ao.nn.quantizable:
ao.nn.quantizable.modules:
ao.nn.quantized: FloatFunctional MaxPool2d *
ao.nn.quantized.modules:
ao.nn.quantized.dynamic: *
ao.nn.intrinsic: _FusedModule *
ao.nn.intrinsic.quantized: *
ao.nn.intrinsic.quantized.dynamic: *
ao.ns:
ao.ns.fx:
ao.ns.fx.ns_types: NSSingleResultValuesType NSSubgraph *
ao.quantization.quantization_mappings: *
jit.mobile: *
ao.quantization: * DeQuantStub FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver
    MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver ObserverBase PerChannelMinMaxObserver
    PlaceholderObserver QConfig QConfigMapping QuantStub QuantType{DYNAMIC,STATIC,QAT,WEIGHT_ONLY}
    QuantWrapper add_quant_dequant convert default_dynamic_qconfig default_observer
    default_per_channel_weight_observer default_qconfig default_weight_observer fuse_modules
    fuse_modules_qat get_default_qat_qconfig get_default_qat_qconfig_mapping get_default_qconfig
    get_default_qconfig_mapping prepare prepare_qat quantize quantize_dynamic quantize_qat
ao.quantization.fake_quantize: FakeQuantize FakeQuantizeBase *
ao.quantization.fx:
ao.quantization.fx._decomposed:
ao.quantization.observer: HistogramObserver MinMaxObserver MovingAverageMinMaxObserver
    MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerChannelMinMaxObserver
    PlaceholderObserver RecordingObserver *
ao.quantization.qconfig: QConfig *
ao.quantization.qconfig_mapping: QConfigMapping *
ao.quantization.stubs: DeQuantStub QuantStub QuantWrapper
ao.quantization.quantize_fx: * convert_fx fuse_fx prepare_fx prepare_qat_fx
nested._internal:
nested._internal.nested_tensor: NestedTensor _tensor_symint_registry
nested._internal.ops: extract_kwargs
nn.quantized: FloatFunctional
nn.quantized.dynamic:
quantization: DeQuantStub FakeQuantizeBase ObserverBase QConfig QuantStub QuantWrapper convert
    default_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig prepare prepare_qat quantize
    quantize_dynamic quantize_qat
quantization.fake_quantize: FakeQuantize FakeQuantizeBase *
quantization.observer: HistogramObserver MinMaxObserver MovingAverageMinMaxObserver
    MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerChannelMinMaxObserver
    PlaceholderObserver RecordingObserver *
quantization.qconfig: QConfig *
quantization.quantize_fx: * convert_fx fuse_fx prepare_fx prepare_qat_fx
quantization.stubs: DeQuantStub QuantStub QuantWrapper
""")
