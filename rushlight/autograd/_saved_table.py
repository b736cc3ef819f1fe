"""The names of what torch's nodes show as `_saved_*`: a fact about each node, whoever records it.

A line has the names, a star at those of tensors (they have a `_raw_saved_*` too), and the nodes that have
them, without the `Backward0` that most end in. A line that begins with a blank goes on with the one before.
"""

from __future__ import annotations

import re

_TEXT = """
A* LU* left pivots* result*: LinalgSolveEx
A* LU* pivots* result*: LinalgDet
A* LU* pivots* sign*: LinalgSlogdet
A* self* solution* transpose unitriangular upper: TriangularSolve
C HxW N eps group input* result1* result2* weight*: NativeGroupNorm
L* P* U* pivot: LinalgLu
L* upper: LinalgCholeskyEx
LU* adjoint left pivots* result*: LinalgLuSolve
LU* pivot pivots*: LinalgLuFactorEx
LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2: LuUnpack
Q* R* mode: LinalgQr
S* S_sym_argsize_minus_1 U* Vh* full_matrices: LinalgSvd
accumulate index* source*: Put
accumulate indices*: IndexPut IndexPutImpl UnsafeIndexPut
align_corners grad_output* grid* input* interpolation_mode padding_mode: GridSampler2DBackward
 GridSampler3DBackward
align_corners grid* input* interpolation_mode padding_mode: GridSampler2D GridSampler3D
align_corners output_size scales: UpsampleLinear1DBackward
align_corners output_size scales self_sym_sizes: UpsampleLinear1D
align_corners output_size scales_d scales_h scales_w: UpsampleTrilinear3DBackward
align_corners output_size scales_d scales_h scales_w self_sym_sizes: UpsampleTrilinear3D
align_corners output_size scales_h scales_w: UpsampleBicubic2DAaBackward UpsampleBicubic2DBackward
 UpsampleBilinear2DAaBackward UpsampleBilinear2DBackward UpsampleLanczos2DAaBackward
align_corners output_size scales_h scales_w self_sym_sizes: UpsampleBicubic2DAa UpsampleBicubic2D
 UpsampleBilinear2DAa UpsampleBilinear2D UpsampleLanczos2DAa
align_corners size: AffineGridGenerator
alpha: Add Rsub RsubBackward1 Sub
alpha batch1* batch1_sym_argsize_0 batch1_sym_argsize_1 batch2* batch2_sym_argsize_2 beta: Addbmm
alpha batch1* batch2* beta: Baddbmm
alpha beta mat* vec*: Addmv
alpha beta mat1* mat1_sym_sizes mat1_sym_strides mat2* mat2_sym_sizes mat2_sym_strides: Addmm
alpha beta vec1* vec2*: Addr
alpha dim index* source* source_dim: IndexAdd
alpha grad_output* input_scale is_result scale self_or_result*: EluBackward
alpha input_scale result* scale: EluBackward1
alpha input_scale scale self*: Elu
alpha result*: CeluBackward1
alpha self*: Celu
approximate grad_output* self*: GeluBackward
approximate self*: Gelu
attn_mask* dropout_p is_causal key* logsumexp* output* query* scale value*:
 ScaledDotProductFlashAttentionForCpu
axis data* initial lengths* offsets* reduce result*: SegmentReduce
b* self* solution*: LinalgLstsq
batch_first input_sym_sizes result1*: PackPaddedSequence
beta grad_output* reduction self* target*: SmoothL1LossBackward
beta grad_output* self* threshold: SoftplusBackward
beta reduction self* target*: SmoothL1Loss
beta self* threshold: Softplus
bias* input* normalized_shape result1* result2* weight*: NativeLayerNorm
bias* pad self* weight*: ConvTbc
bias_sym_sizes_opt dilation groups input* output_padding padding stride transposed weight*: Convolution
 ConvolutionBackward1
bias_sym_sizes_opt padding self* stride weight*: SlowConv3D
blank input_lengths log_probs* result0* result1* target_lengths targets* zero_infinity: CtcLoss
blank input_lengths* log_probs* result0* result1* target_lengths* targets* zero_infinity: CtcLossBackward1
buffer* grad_output* self*: LogSigmoidBackward
buffer* self*: LogSigmoid
ceil_mode count_include_pad divisor_override kernel_size padding self* stride: AvgPool2D AvgPool3D
ceil_mode count_include_pad divisor_override kernel_size padding stride: AvgPool2DBackward AvgPool3DBackward
ceil_mode dilation kernel_size padding result1* self* stride: MaxPool2DWithIndices MaxPool3DWithIndices
ceil_mode dilation kernel_size padding self* stride: MaxPool2D
condition*: Where
correction dim keepdim result* self*: Std
correction dim keepdim result0* self*: StdMean
correction dim keepdim self*: Var VarMean
delta grad_output* reduction self* target*: HuberLossBackward
delta reduction self* target*: HuberLoss
diagonal: Tril Triu
dilation grad_output* groups input* output_padding padding stride transposed weight*: ConvolutionBackward
dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride: Im2Col
dilation kernel_size padding stride: Col2Im
dim: Cat Cumsum Stack Unbind UnbindBackward0_copy Unsqueeze UnsqueezeBackward0_copy UnsqueezeBackward1
dim end self_sym_sizes start step: Slice SliceBackward0_copy
dim end start step: SliceBackward SliceInverse SliceScatter
dim forward normalization: FftC2C
dim g* result1* v*: WeightNormInterface
dim grad_output* output*: LogSoftmaxBackwardData SoftmaxBackwardData
dim grad_output* self*: GluBackward
dim include_self index* reduce result* self* source*: IndexReduce
dim include_self index* reduce result* self* src*: ScatterReduce
dim index: SelectBackward SelectScatter
dim index self_sym_sizes: Select SelectBackward0_copy
dim index*: IndexFill IndexFillBackward1 ScatterAdd Scatter ScatterBackward1
dim index* self* sparse_grad: Gather
dim index* self_sym_sizes: IndexSelect
dim index* source* source_dim: IndexCopy
dim indices* keepdim self_sym_sizes: Kthvalue Max MedianBackward1 Min Mode NanmedianBackward1
dim indices* self*: Cummax Cummin
dim indices* self_sym_sizes: Sort SortBackward1 Topk
dim keepdim max* min* self*: Aminmax
dim keepdim ord result* self*: LinalgVectorNorm
dim keepdim p result* self*: NormBackward1 NormBackward3
dim keepdim result* self*: Amax Amin Logsumexp ProdBackward1
dim keepdim self*: Nansum
dim keepdim self_sym_numel self_sym_sizes: MeanBackward1
dim keepdim self_sym_sizes: SumBackward1
dim length self_sym_sizes start: NarrowCopy
dim mask* result*: MaskedSoftmax
dim maxnorm p self*: Renorm
dim normalization: FftC2R
dim normalization onesided self*: FftR2C
dim other* self*: LinalgCross
dim result*: LogSoftmax SafeSoftmax Softmax
dim result* self*: Cumprod Logcumsumexp
dim self*: Glu
dim self_sym_sizes: SqueezeBackward1 SqueezeBackward1_copy SqueezeBackward2 SqueezeBackward2_copy
 SqueezeBackward4 SqueezeBackward5
dim self_sym_sizes split_size: Split SplitBackward0_copy UnsafeSplit
dim self_sym_sizes split_sizes: SplitWithSizes SplitWithSizesBackward0_copy UnsafeSplitWithSizes
dim size step: UnfoldBackward
dim0 dim1: Transpose TransposeBackward0_copy TransposeBackward1
dim1 dim2 offset: DiagEmbed DiagonalBackward DiagonalScatter
dim1 dim2 offset self_sym_sizes: Diagonal DiagonalBackward0_copy
dimension self_sym_sizes size step: Unfold UnfoldBackward0_copy
dims: Flip Permute PermuteBackward0_copy
dims k: Rot90
dims shifts: Roll
downscale_factor: PixelUnshuffle
eigenvalues* eigenvectors*: LinalgEig LinalgEigh
end* self* weight*: LerpBackward1
eps grad_out* input* reserve* running_mean* running_var* save_mean* save_var* update weight*:
 BatchNormBackward
eps grad_out* input* running_mean* running_var* save_invstd* save_mean* train weight*:
 NativeBatchNormBackward
eps input* result1* result2* result3* running_mean* running_var* weight*: BatchNormNoUpdate
 BatchNormWithUpdate
eps input* result1* result2* running_mean* running_var* training weight*: NativeBatchNorm
 NativeBatchNormLegit
eps input* result1* result2* running_mean* running_var* weight*: NativeBatchNormLegitNoTraining
eps input* result1* result2* training weight*: NativeBatchNormLegitBackward1
eps self*: Logit
expand1 expand2 expand3 i1* i2* i3* sumdim: Trilinear
exponent self*: Pow
exponent*: Frexp
exponent* result* self: PowBackward2
exponent* result* self*: PowBackward1
grad_out* input* mean* normalized_shape rstd* weight*: NativeLayerNormBackward
grad_output* mask* scale: NativeDropoutBackward
grad_output* output*: SigmoidBackward TanhBackward
grad_output* reduction self* target*: MseLossBackward SoftMarginLossBackward
grad_output* reduction self* target* weight*: BinaryCrossEntropyBackward
grad_output* self*: HardswishBackward
grad_output* self* weight*: PreluKernelBackward
grad_output_sym_argsize_minus_1 grad_output_sym_argsize_minus_2: AdaptiveAvgPool2DBackward
grad_output_sym_argsize_minus_1 grad_output_sym_argsize_minus_2 grad_output_sym_argsize_minus_3:
 AdaptiveAvgPool3DBackward
groups: ChannelShuffle
ignore_index reduction self* target* total_weight* weight*: NllLoss2D NllLoss
ignore_index reduction target* weight*: NllLoss2DBackward NllLossBackward
imag* real*: Complex
index* self*: Take
indices*: AdaptiveMaxPool2DBackward AdaptiveMaxPool3DBackward FractionalMaxPool2DBackward
 FractionalMaxPool3DBackward MaxPool2DWithIndicesBackward MaxPool3DWithIndicesBackward MaxUnpool2D
 MaxUnpool3D
indices* mask*: UnsafeMaskedIndexPutAccumulate
indices* mask* self_sym_sizes: UnsafeMaskedIndex
indices* mode offsets* padding_idx per_sample_weights* result1* result2* result3* scale_grad_by_freq sparse
 weight* weight_sym_argsize_0: EmbeddingBag
indices* padding_idx: EmbeddingDenseBackward
indices* padding_idx scale_grad_by_freq sparse weight_sym_argsize_0: Embedding
indices* self_sym_sizes: Index UnsafeIndex
input* result* tau*: LinalgHouseholderProduct
input* weight*: Linear
input2* input3* left result* self* transpose: Ormqr
input2* result* self* upper: CholeskySolve
inverse*: LinalgInvEx
is_target* reduction self* target*: MultilabelMarginLoss
kernel_size output_size result1* self*: FractionalMaxPool2D FractionalMaxPool3D
lambd self*: Hardshrink HardshrinkBackward Softshrink SoftshrinkBackward
left result* self* unitriangular upper: LinalgSolveTriangular
lower noise* result* training upper: RreluWithNoiseBackward1
lower noise* self* training upper: RreluWithNoise RreluWithNoiseBackward RreluWithNoiseFunctional
margin p reduction self* target* weight*: MultiMarginLoss
mask*: MaskedFill MaskedFillBackward1 MaskedScatterBackward
mask* self*: MaskedSelect
mask* source_sym_sizes: MaskedScatter
mat2* mat2_sym_sizes mat2_sym_strides offs* self* self_sym_sizes self_sym_strides: GroupedMm
mat2* mat2_sym_sizes mat2_sym_strides self* self_sym_sizes self_sym_strides: Mm
mat2* self*: Bmm
max min self*: ClampBackward1
max self*: ClampMax
max* min* self*: Clamp
max* self*: ClampMaxBackward1
max_val min_val self*: Hardtanh HardtanhBackward
mean_sym_sizes: NormalBackward1
mean_sym_sizes std_sym_sizes: NormalBackward3
min self*: ClampMin
min* self*: ClampMinBackward1
n self*: Polygamma PolygammaBackward1
negative_slope result*: LeakyReluBackward1
negative_slope self*: LeakyRelu LeakyReluBackward
other: DivBackward1 MulBackward1
other rounding_mode: DivBackward3
other self*: SpecialXlog1PyBackward2 XlogyBackward2
other* p result* self*: Dist
other* result*: Ldexp
other* result* self*: Hypot
other* rounding_mode self*: DivBackward2
other* self: SpecialXlog1PyBackward1 SpecialZetaBackward1 XlogyBackward1
other* self*: Atan2 Div Fmax Fmin FmodBackward1 Igamma Igammac Logaddexp2 Logaddexp Matmul Maximum Minimum
 Mul Nextafter RemainderBackward1 SpecialXlog1Py SpecialZeta Vdot Xlogy
output_size scales: UpsampleNearest1DBackward UpsampleNearestExact1DBackward
output_size scales self_sym_sizes: UpsampleNearest1D UpsampleNearestExact1D
output_size scales_d scales_h scales_w: UpsampleNearest3DBackward UpsampleNearestExact3DBackward
output_size scales_d scales_h scales_w self_sym_sizes: UpsampleNearest3D UpsampleNearestExact3D
output_size scales_h scales_w: UpsampleNearest2DBackward UpsampleNearestExact2DBackward
output_size scales_h scales_w self_sym_sizes: UpsampleNearest2D UpsampleNearestExact2D
p result* self*: Norm NormBackward2 Pdist
p result* x1* x2*: Cdist
p result1*: NativeDropout
p self*: Mvlgamma
pad: ConstantPadNd
padding: ReflectionPad1DBackward ReflectionPad2DBackward ReflectionPad3DBackward ReplicationPad1DBackward
 ReplicationPad2DBackward ReplicationPad3DBackward
padding self*: ReflectionPad1D ReflectionPad2D ReflectionPad3D ReplicationPad1D ReplicationPad2D
 ReplicationPad3D
pos_weight* reduction self* target* weight*: BinaryCrossEntropyWithLogits
reduction self* target*: MseLoss SoftMarginLoss
reduction self* target* weight*: BinaryCrossEntropy
repeats self_sym_sizes: Repeat
result*: Exp2 Exp Expm1 Polar Reciprocal Relu Rsqrt Sigmoid SpecialNdtri Sqrt Tan Tanh
result* self*: Copysign CopysignBackward1 LinalgPinv MaxBackward1 Median MinBackward1 Nanmedian Prod Sgn
 SpecialErfcx SpecialI0E SpecialI1 SpecialI1E SpecialLogNdtr StandardGamma
result* self* upper: CholeskyInverse
result* upper: Cholesky
result* x1* x2*: EuclideanDist
result1* self*: AdaptiveMaxPool2D AdaptiveMaxPool3D
other* self*: ForeachDiv
exponent* result* self*: ForeachPow
exponent self*: ForeachPowBackward1
exponent* result* self: ForeachPowBackward2
ord result* self*: ForeachNorm
scalar self*: ForeachMaximum ForeachMinimum
scalars self*: ForeachMaximumBackward1 ForeachMinimumBackward1
self*: Abs Acos Acosh AdaptiveAvgPool2D AdaptiveAvgPool3D Angle Asin Asinh Atan Atanh Cos Cosh Digamma Erf
 Erfc Erfinv Hardsigmoid Hardswish I0 Lgamma LinalgMatrixExp Log10 Log1P Log2 Log Mish NanToNum Silu Sin
 Sinc Sinh SpecialEntr ToDense
self* tensor*: Dot
self* threshold: Threshold ThresholdBackward1 ThresholdBackward
self* vec*: Mv
self* weight*: PreluKernel
self_self_sym_blocksize_opt: ToSparse ToSparseBackward1
self_sym_numel self_sym_sizes: Mean
self_sym_sizes: Expand ExpandBackward0_copy ReshapeAlias ReshapeAliasBackward0_copy ReshapeCopy Squeeze
 SqueezeBackward0_copy SqueezeBackward3 Sum Trace UnsafeView View ViewBackward0_copy
size storage_offset stride: AsStrided AsStridedBackward0_copy AsStridedBackward1 AsStridedScatter
std_sym_sizes: NormalBackward2
tensor1* tensor2* value: Addcdiv Addcmul
upscale_factor: PixelShuffle
weight: Lerp
"""


def _read() -> dict[str, dict[str, bool]]:
    found = {}
    for line in _TEXT.strip().replace("\n ", " ").split("\n"):
        names, nodes = line.split(": ")
        shown = {name.rstrip("*"): name.endswith("*") for name in names.split()}
        for node in nodes.split():
            found[node if re.search(r"Backward\d(_copy)?$", node) else f"{node}Backward0"] = shown
    return found


# node -> {name: whether it is a tensor}
SHOWN = _read()
