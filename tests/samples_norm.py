"""Samples of normalisation, recurrent networks and attention."""

from typing import Any

from families import const, index, mask, op, x
from sampling import call

# Differences cancel in a norm: results of half types differ from torch's in the last digits.
NORM: dict[str, Any] = {
    "method": False, "dtypes": "f", "grad": "f", "strict": False, "tolerance": 20, "same_strides": False,
    "layouts": ("transposed", "strided", "offset"),
}  # fmt: skip
SPREAD = {"distinct": True, "low": -2.0, "high": 3.0}

POSITIVE = {"low": 0.5, "high": 2.0}


def _run_batch_norm(lib: Any) -> Any:
    """batch_norm on copies of the running statistics, which it changes."""

    def run(input: Any, mean: Any, var: Any, *args: Any, **kwargs: Any) -> Any:
        mean, var = (None if t is None else t.detach().clone() for t in (mean, var))
        return lib.nn.functional.batch_norm(input, mean, var, *args, **kwargs)

    return run


def _first(name: str) -> Any:
    """The first result; the others carry no gradient."""
    return lambda lib: lambda *args: getattr(lib, name)(*args)[0]


_layer = [
    call(x(3, 4, **SPREAD), (4,)),
    call(x(2, 3, 4, **SPREAD), (4,), x(4), x(4)),
    call(x(2, 3, 4, **SPREAD), (3, 4), x(3, 4), x(3, 4), 1e-3),
    call(x(2, 9, **SPREAD), [9], x(9)),
    call(x(2, 9, **SPREAD), [9], None, x(9)),
    call(x(0, 3), (3,), x(3), x(3)),
]
op("layer_norm", _layer, covers=("native_layer_norm_backward",), **NORM)
op("nn.functional.layer_norm", _layer[:3], **NORM)
op(
    "native_layer_norm",
    [call(x(3, 4, **SPREAD), (4,), x(4), x(4), 1e-3)],
    run=_first("native_layer_norm"),
    **NORM,
)
_rms = [
    call(x(3, 4, **SPREAD), (4,)),
    call(x(2, 3, 4, **SPREAD), (4,), x(4), 1e-3),
    call(x(2, 3, 4, **SPREAD), (3, 4), x(3, 4), 1e-3),
    call(x(2, 9, **SPREAD), [9], x(9), 0.5),
]
op("rms_norm", _rms, covers=("rms_norm_backward",), **NORM | {"dtypes": "fc", "grad": "fc"})
op("nn.functional.rms_norm", _rms[:2], **NORM)
_group = [
    call(x(2, 4, 3, **SPREAD), 2),
    call(x(2, 4, 2, 3, **SPREAD), 2, x(4), x(4)),
    call(x(3, 6, **SPREAD), 2, x(6), x(6), 1e-3),
    call(x(2, 4, 9, **SPREAD), 1, x(4)),
    call(x(2, 4, 5, **SPREAD), 4, None, x(4)),
]
op("group_norm", _group, covers=("native_group_norm_backward",), **NORM)
op("nn.functional.group_norm", _group[:2], **NORM)
op(
    "native_group_norm",
    [call(x(2, 4, 3, **SPREAD), x(4), x(4), 2, 4, 3, 2, 1e-3)],
    **NORM | {"tolerance": 40},
)
op(
    "nn.functional.batch_norm",
    [
        call(x(4, 3, **SPREAD), None, None, training=True),
        call(x(4, 3, **SPREAD), const(3), const(3, **POSITIVE), x(3), x(3), True),
        call(x(2, 3, 4, **SPREAD), const(3), const(3, **POSITIVE), x(3), None, True, 0.3, 1e-3),
        call(x(2, 3, 2, 2, **SPREAD), const(3), const(3, **POSITIVE), None, x(3), True),
        call(x(4, 3, **SPREAD), const(3), const(3, **POSITIVE), x(3), x(3), False),
        call(x(2, 3, 2, 2, **SPREAD), const(3), const(3, **POSITIVE)),
    ],
    run=_run_batch_norm,
    covers=("batch_norm_train", "batch_norm_eval", "batch_norm_backward"),
    **NORM,
)
op(
    "batch_norm",
    [
        call(x(4, 3, **SPREAD), x(3), x(3), None, None, True, 0.1, 1e-3, True),
        call(x(4, 3, **SPREAD), x(3), x(3), const(3), const(3, **POSITIVE), False, 0.1, 1e-3, True),
    ],
    **NORM,
)
op(
    "native_batch_norm",
    [call(x(4, 3, **SPREAD), x(3), x(3), None, None, True, 0.1, 1e-3)],
    run=_first("native_batch_norm"),
    **NORM,
)
_instance = [
    call(x(2, 3, 4, **SPREAD)),
    call(x(2, 3, 2, 2, **SPREAD), None, None, x(3), x(3)),
    call(x(2, 3, 4, **SPREAD), const(3), const(3, **POSITIVE), x(3), x(3), False),
]
op("nn.functional.instance_norm", _instance, **NORM)
op(
    "instance_norm",
    [call(x(2, 3, 4, **SPREAD), x(3), x(3), None, None, True, 0.1, 1e-3, True)],
    **NORM,
)
op(
    "nn.functional.local_response_norm",
    [call(x(2, 3, 4), 2), call(x(1, 5, 2, 2), 3, 0.5, 0.5, 2.0, only="s"), call(x(0, 2, 3), 3)],
    **NORM | {"tolerance": 4},
)
op(
    "nn.functional.normalize",
    [call(x(2, 3)), call(x(2, 3), 1.0, 0), call(x(2, 3, 2), p=3.0, dim=-1)],
    **NORM | {"dtypes": "fc", "grad": "fc", "tolerance": 4},
)

ATTENTION: dict[str, Any] = NORM | {"tolerance": 8, "layouts": ("transposed", "strided")}
op(
    "nn.functional.scaled_dot_product_attention",
    [
        call(x(3, 4), x(5, 4), x(5, 2)),
        call(x(2, 2, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 4), is_causal=True),
        call(x(2, 2, 3, 4), x(2, 2, 3, 4), x(2, 2, 3, 4), x(3, 3), scale=0.7),
        call(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), mask(1, 0, 1, 0, 0, 0, 1, 1, 1, shape=(3, 3))),
        call(x(1, 4, 2, 3), x(1, 2, 2, 3), x(1, 2, 2, 3), enable_gqa=True),
    ],
    covers=("attention", "attention_keeping", "attention_backward", "attention_keeping_backward"),
    **ATTENTION,
)
op(
    "nn.functional.multi_head_attention_forward",
    [
        call(
            *(x(3, 2, 4), x(5, 2, 4), x(5, 2, 4), 4, 2, x(12, 4), x(12)),
            *(None, None, False, 0.0, x(4, 4), x(4)),
        ),
        call(
            *(x(3, 4), x(5, 4), x(5, 4), 4, 2, x(12, 4), x(12), x(1, 1, 4), x(1, 1, 4), True, 0.0),
            *(x(4, 4), x(4)),
        ),
    ],
    **ATTENTION | {"layouts": ()},
)

RNN: dict[str, Any] = NORM | {"tolerance": 8, "layouts": ("strided",), "dtypes": "f"}
_weights = {"lstm": 12, "gru": 9, "rnn_tanh": 3, "rnn_relu": 3}
for _name, _gates in _weights.items():
    _parameters = [x(_gates, 2), x(_gates, 3), x(_gates), x(_gates)]
    _state = (x(2, 2, 3), x(2, 2, 3)) if _name == "lstm" else x(2, 2, 3)
    _both = [*_parameters, *_parameters]
    op(
        _name,
        [
            call(x(3, 2, 2), _state, _both, True, 1, 0.0, True, True, False),
            call(x(5, 2), index(2, 2, 1), _state, _both, True, 1, 0.0, True, True),
        ],
        covers=("rnn_sequence", "rnn_sequence_backward") if _name == "lstm" else (),
        **RNN,
    )
    _state = (x(2, 3), x(2, 3)) if _name == "lstm" else x(2, 3)
    op(f"{_name}_cell", [call(x(2, 2), _state, *_parameters), call(x(2, 2), _state, *_parameters[:2])], **RNN)

# torch's gradient holds for log_probs that sum to one: finite differences do not keep to that.
op(
    "nn.functional.ctc_loss",
    [
        call(x(4, 2, 3, low=-3, high=-0.5), index(1, 2, 2, 1, shape=(2, 2)), (4, 3), (2, 1), nograd=True),
        call(x(4, 3, low=-3, high=-0.5), index(1, 2), (4,), (2,), reduction="sum", nograd=True),
    ],
    covers=("ctc_loss_backward",),
    second=False,
    **NORM | {"dtypes": "s", "grad": "", "tolerance": 8, "layouts": ("strided",)},
)
op(
    "ctc_loss",
    [call(x(4, 1, 3, low=-3, high=-0.5), index(1, 2), (4,), (2,), 0, 0, True, nograd=True)],
    second=False,
    **NORM | {"dtypes": "s", "grad": "", "tolerance": 8, "layouts": ()},
)
