"""What libraries import from parts of torch that Rushlight does not have: names that say so when used."""

import importlib
import subprocess
import sys
import textwrap

import pytest

import rushlight as torch
from rushlight._absent_names import MODULES, TOP_LEVEL


@pytest.mark.parametrize("name", MODULES)
def test_module_can_be_imported(name):
    module = importlib.import_module(f"rushlight.{name}")
    for entry in MODULES[name].split():
        assert hasattr(module, entry.partition("{")[0].partition("=")[0].rstrip("?@!")), entry


def test_using_an_absent_name_raises():
    with pytest.raises(NotImplementedError, match=r"torch\.export\.export is not implemented"):
        torch.export.export(torch.sin)
    with pytest.raises(NotImplementedError, match=r"torch\.export\.ExportedProgram is not implemented"):
        torch.export.ExportedProgram()
    with pytest.raises(NotImplementedError, match=r"torch\.while_loop is not implemented"):
        torch.while_loop(torch.sin)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_it'"):
        torch.onnx.nothing_like_it
    assert all(hasattr(torch, name) for name in TOP_LEVEL.split())
    assert not isinstance(torch.ones(2), torch.SymInt)


def test_tensors_with_masks_are_named():
    from rushlight.masked.maskedtensor.core import MaskedTensor

    assert not torch.masked.is_masked_tensor(torch.ones(2))
    assert not isinstance(torch.ones(2), MaskedTensor)
    with pytest.raises(NotImplementedError, match="masked_tensor is not implemented"):
        torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        torch.masked.nothing_like_it


def test_what_can_be_answered_is():
    assert torch._dynamo.is_compiling() is False
    assert torch.onnx.is_in_onnx_export() is False
    assert torch.distributed.rpc.is_available() is False
    assert torch._dynamo.disable(len) is len
    assert torch._dynamo.disable()(len) is len
    x = torch.ones(2)
    assert torch._guards.active_fake_mode() is None and torch._guards.detect_fake_mode([x]) is None
    assert torch._dynamo.mark_static_address(x) is None and torch._dynamo.mark_dynamic(x, 0) is None
    assert torch.func.functional_call(torch.nn.Identity(), {}, torch.ones(1)).item() == 1
    assert torch.distributed.fsdp.ShardingStrategy.FULL_SHARD.name == "FULL_SHARD"
    assert torch.distributed.fsdp.api.StateDictType is torch.distributed.fsdp.StateDictType


def test_programs_import_them(tmp_path):
    program = textwrap.dedent("""
        import torch
        import torch.distributed.fsdp.wrap, torch.nn.parallel.distributed, torch._dynamo.config
        from torch.distributed.algorithms.join import Join
        from torch.func import functional_call, vmap
        from torch.fx.node import Node
        from torch._C._functorch import is_batchedtensor
        from torch.cuda.amp import GradScaler, autocast
        torch._dynamo.config.cache_size_limit = 64
        print(is_batchedtensor(torch.ones(1)), Join.__module__)
    """)
    command = [sys.executable, "-m", "rushlight", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False torch.distributed.algorithms.join\n", "")


def test_checks():
    torch._check(True)
    torch._assert(torch.tensor(1), "message")
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check(False)
    with pytest.raises(ValueError, match="why"):
        torch._check_value(False, lambda: "why")
    with pytest.raises(TypeError, match="cond must be a bool, but got a Tensor"):
        torch._check(torch.tensor(True))
    with pytest.raises(RuntimeError, match="some"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "some")
    with pytest.raises(AssertionError, match="message"):
        torch._assert(False, "message")
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]


def test_custom_op_has_the_gradient_it_is_given():
    @torch.library.custom_op("tests::weighted", mutates_args=())
    def weighted(x: torch.Tensor, ys: list[torch.Tensor], k: float = 2.0) -> torch.Tensor:
        return x * k + sum(ys)

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        weighted(x, [y]).sum().backward()

    def setup(ctx, inputs, output):
        ctx.k, ctx.count = inputs[2], len(inputs[1])

    weighted.register_autograd(lambda ctx, g: (g * ctx.k, [g] * ctx.count, None), setup_context=setup)
    torch.ops.tests.weighted(x, [y, y], k=3.0).sum().backward()
    assert x.grad.tolist() == [3, 3] and y.grad.tolist() == [2, 2]
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute 'nothing'"):
        torch.library.register_autograd("tests::nothing", lambda ctx, g: g)


def test_cuda_amp_warns_and_does_nothing():
    with pytest.warns(FutureWarning, match="is deprecated"), pytest.warns(UserWarning, match="Disabling"):
        scaler = torch.cuda.amp.GradScaler()
    assert scaler.scale(torch.ones(1)).item() == 1
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="Disabling autocast"):
        context = torch.cuda.amp.autocast()
    with context:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_a_dtype_in_an_annotation():
    import inspect

    def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor: ...

    assert "dtype: rushlight.dtype" in str(inspect.signature(cast))


def test_a_fake_for_an_operation_of_a_compiled_library_that_is_left_out():
    @torch.library.register_fake("tests_compiled::nms")
    def fake(boxes):
        return boxes

    assert fake(1) == 1 and not hasattr(torch.ops.tests_compiled, "nms")


def test_names_that_libraries_import_from_serialization():
    from rushlight.serialization import FILE_LIKE, MAP_LOCATION, FileLike  # pyro, torchsnapshot

    assert FILE_LIKE is FileLike is MAP_LOCATION


def test_observers_of_quantisation_can_be_subclassed():
    from rushlight.quantization.observer import HistogramObserver
    from rushlight.quantization.qconfig import QConfig

    own = type("Own", (HistogramObserver,), {})
    assert not isinstance(torch.nn.Linear(1, 1), (own, QConfig))
    with pytest.raises(NotImplementedError, match=r"torch\.quantization\.observer\.HistogramObserver"):
        HistogramObserver()


def test_operations_between_processes_are_known_by_name():
    """torchao says at its import how its tensors take part in them."""
    assert str(torch.ops._c10d_functional.wait_tensor.default) == "_c10d_functional.wait_tensor.default"
    assert torch.ops.c10d.scatter_.overloads() == ["default"]
    with pytest.raises(NotImplementedError, match=r"c10d_functional\.wait_tensor is not implemented"):
        torch.ops.c10d_functional.wait_tensor(torch.ones(2))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_operation'"):
        torch.ops._c10d_functional.no_such_operation
    with pytest.raises(AttributeError, match="has no attribute '_no_such_library'"):
        torch.ops._no_such_library


def test_kinds_of_scales_are_named():
    scaling, swizzle = torch.nn.functional.ScalingType, torch.nn.functional.SwizzleType
    assert repr(scaling(1)) == "<_ScalingType.RowWise: 1>"
    assert repr(swizzle(1)) == "<_SwizzleType.SWIZZLE_32_4_4: 1>"
    assert int(scaling.BlockWise128x128) == 5 and scaling.RowWise.name == "RowWise"


def test_semi_structured_tensors_are_named():
    from rushlight.sparse import SparseSemiStructuredTensorCUTLASS, semi_structured

    assert semi_structured.SparseSemiStructuredTensorCUTLASS is SparseSemiStructuredTensorCUTLASS
    with pytest.raises(NotImplementedError, match="SparseSemiStructuredTensorCUTLASS is not implemented"):
        SparseSemiStructuredTensorCUTLASS(torch.ones(2))


def test_a_compilers_warning_is_given_once():
    from rushlight._dynamo.utils import warn_once

    with pytest.warns(UserWarning, match="told once") as told:
        for _ in range(2):
            warn_once("told once")
    assert len(told) == 1 and told[0].filename == __file__
