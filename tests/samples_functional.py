"""Samples of `nn.functional`."""

from typing import Any

from families import AWAY, POSITIVE, const, index, op, x
from sampling import Input, call


def functional(name: str, samples: list[Any], **properties: Any) -> None:
    op(
        f"nn.functional.{name}",
        samples,
        **({"method": False, "dtypes": "f", "grad": "f", "strict": False} | properties),
    )


def activation(
    name: str, *variants: dict[str, Any], avoid: tuple[float, ...] = (), **properties: Any
) -> None:
    """The defaults on several shapes, then other settings."""
    samples = [call(x(3, 4, avoid=avoid, low=-4, high=4)), call(x()), call(x(0, 3))]
    samples += [call(x(5, avoid=avoid), **variant) for variant in variants]
    functional(name, samples, **properties)


# Activations
activation("relu", avoid=(0.0,), dtypes="fi")
activation("relu6", avoid=(0.0,), dtypes="fi")
functional("threshold", [call(x(3, 4, avoid=(0.5,)), 0.5, 0.0), call(x(5, avoid=(1,)), 1, 7)], dtypes="fi")
activation(
    "hardtanh",
    {"min_val": -0.5, "max_val": 0.7},
    avoid=(-1, 1, -0.5, 0.7),
    dtypes="fz",
    covers=("hardtanh_backward",),
)
activation(
    "elu", {"alpha": 0.5}, avoid=(0.0,), covers=("elu_backward", "elu_written", "elu_written_backward")
)
activation("selu", avoid=(0.0,))
activation("celu", {"alpha": 0.5}, avoid=(0.0,))
activation(
    "leaky_relu", {"negative_slope": 0.2}, avoid=(0.0,), covers=("leaky_relu_backward", "leaky_relu_written")
)
activation("rrelu", {"lower": 0.1, "upper": 0.1, "training": False}, avoid=(0.0,), covers=("straight",))
functional(
    "prelu",
    [call(x(2, 3, avoid=(0.0,)), x(3)), call(x(2, 3, avoid=(0.0,)), x(1)), call(x(4, avoid=(0.0,)), x(1))],
)
functional("glu", [call(x(3, 4)), call(x(4, 3), 0), call(x(2, 4, 2), dim=1)])
activation("logsigmoid", covers=("log_sigmoid",))
activation(
    "softplus", {"beta": 2.0}, {"beta": 1.0, "threshold": 1.0}, avoid=(1.0,), covers=("softplus_backward",)
)
activation("softsign", avoid=(0.0,), dtypes="fci")
activation("tanhshrink", dtypes="fci")
for _name in ("hardshrink", "softshrink"):
    activation(_name, {"lambd": 1.0}, avoid=(-1, -0.5, 0.5, 1), covers=(f"{_name}_backward",))
activation("hardsigmoid", avoid=(-3, 3), covers=("hardsigmoid_backward",))
activation("hardswish", avoid=(-3, 3), covers=("hardswish_backward",))
activation("sigmoid", dtypes="fcib", grad="fc")
activation("tanh", dtypes="fcib", grad="fc")
activation("silu", dtypes="fc", covers=("silu_backward",))
activation("mish")
activation("gelu", {"approximate": "tanh"}, covers=("gelu_tanh", "gelu_backward", "gelu_tanh_backward"))
for _name in ("softmax", "softmin", "log_softmax"):
    functional(_name, [call(x(3, 4), dim=0), call(x(3, 4), dim=-1), call(x(2, 3, 2), dim=1)])
for _name, _shape in {
    "dropout": (3,),
    "alpha_dropout": (3,),
    "dropout1d": (2, 3, 4),
    "dropout2d": (1, 2, 2, 2),
}.items():
    functional(_name, [call(x(*_shape), 0.5, training=False)], dtypes="fcib", grad="fc")

# Linear maps and distances
LINEAR: dict[str, Any] = {"dtypes": "fci", "grad": "fc", "tolerance": 4}
functional(
    "linear",
    [
        call(x(2, 3), x(4, 3)),
        call(x(2, 3), x(4, 3), x(4)),
        call(x(3), x(2, 3), x(2)),
        call(x(2, 2, 3), x(2, 3), x(2)),
        call(x(0, 3), x(2, 3), x(2)),
        call(x(2, 2, 3), x(4, 3)),
    ],
    covers=("linear_unbiased", "linear_nd_unbiased"),
    **LINEAR,
)
functional(
    "bilinear",
    [
        call(x(2, 3), x(2, 4), x(2, 3, 4)),
        call(x(3), x(2), x(2, 3, 2), x(2)),
        call(x(2, 0, 3), x(2, 0, 2), x(2, 3, 2), x(2)),
        call(x(2, 2, 3), x(2, 2, 2), x(0, 3, 2), x(0)),
    ],
    covers=("trilinear",),
    **(LINEAR | {"grad": "f"}),
)
functional(
    "cosine_similarity",
    [call(x(3, 4), x(3, 4)), call(x(4), x(4), dim=0), call(x(2, 3), x(1, 3))],
    tolerance=4,
)
functional(
    "pairwise_distance",
    [call(x(3, 4), x(3, 4)), call(x(4), x(4), p=1.0), call(x(2, 3), x(2, 3), keepdim=True)],
    dtypes="fci",
    tolerance=4,
)

# Losses
REDUCTIONS = ("mean", "sum", "none")


def loss(name: str, *tensors: Any, **properties: Any) -> None:
    functional(name, [call(*tensors, reduction=reduction) for reduction in REDUCTIONS], **properties)


UNIT = {"low": 0.1, "high": 0.9}
FAR = {"distinct": True, "low": 2.1, "high": 5.0}
loss("mse_loss", x(3, 4), x(3, 4), covers=("mul_in_order",))
loss("l1_loss", x(3, 4), x(3, 4, **FAR))
loss(
    "smooth_l1_loss",
    x(3, 4),
    x(3, 4, low=-0.2, high=0.3),
    covers=("smooth_absolute", "smooth_absolute_backward"),
)
loss("huber_loss", x(3, 4), x(3, 4, low=-0.2, high=0.3))
loss("binary_cross_entropy", x(3, 4, **UNIT), x(3, 4, **UNIT), const(4, **POSITIVE))
loss("binary_cross_entropy_with_logits", x(3, 4), x(3, 4, **UNIT), const(4, **POSITIVE))
functional("kl_div", [call(x(3, 4), x(3, 4, **UNIT), reduction=how) for how in ("batchmean", "sum", "none")])
loss("poisson_nll_loss", x(3, 4), x(3, 4, **UNIT), dtypes="fci")
loss("gaussian_nll_loss", x(3, 4), x(3, 4), x(3, 4, **AWAY))
SIGNS = Input((4,), values=(1.0, -1.0, 1.0, -1.0), grad=False)
loss("soft_margin_loss", x(4), SIGNS)
loss("hinge_embedding_loss", x(4, low=-0.9, high=0.9, avoid=(0.0,)), SIGNS)
loss("margin_ranking_loss", x(4), x(4), SIGNS)
loss("cosine_embedding_loss", x(4, 3), x(4, 3), SIGNS, dtypes="fib", tolerance=4)
loss(
    "triplet_margin_loss",
    x(3, 4),
    x(3, 4, low=3.0, high=4.0),
    x(3, 4, low=-0.5, high=0.5),
    dtypes="fci",
    tolerance=4,
)
loss(
    "triplet_margin_with_distance_loss",
    x(3, 4),
    x(3, 4, low=3.0, high=4.0),
    x(3, 4, low=-0.5, high=0.5),
    dtypes="fci",
)
loss("multilabel_soft_margin_loss", x(2, 3), const(2, 3, **UNIT))
CLASSES = index(0, 3, 1)
functional(
    "nll_loss",
    [
        *(call(x(3, 4), CLASSES, const(4, **POSITIVE), reduction=how) for how in REDUCTIONS),
        *(
            call(x(2, 4, 3), index(0, 3, 1, 2, 2, 0, shape=(2, 3)), ignore_index=2, reduction=how)
            for how in REDUCTIONS
        ),
        call(x(4), index(2, shape=())),
    ],
    covers=("nll_loss_backward", "nll_loss2d", "nll_loss2d_backward"),
)
loss("cross_entropy", x(3, 4), CLASSES, const(4, **POSITIVE))
loss("multi_margin_loss", x(3, 4, distinct=True, low=-0.4, high=0.45), CLASSES, dtypes="s")
loss(
    "multilabel_margin_loss",
    x(2, 3, distinct=True, low=-0.4, high=0.45),
    index(2, 0, -1, 1, -1, 0, shape=(2, 3)),
    dtypes="s",
)
