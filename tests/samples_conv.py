"""Samples of convolutions, pooling, padding and resizing."""

import warnings
from typing import Any

from families import index, op, x
from sampling import Input, call

FUNCTIONAL: dict[str, Any] = {"method": False, "strict": False, "same_strides": False, "tolerance": 8}
CONV: dict[str, Any] = FUNCTIONAL | {"dtypes": "fci", "grad": "fc"}
DISTINCT = {"distinct": True}


def functional(name: str, samples: list[Any], **properties: Any) -> None:
    op(f"nn.functional.{name}", samples, **(FUNCTIONAL | {"dtypes": "f", "grad": "f"} | properties))


# Convolutions
op(
    "conv1d",
    [
        call(x(2, 3, 5), x(4, 3, 2), x(4)),
        call(x(3, 5), x(2, 3, 3)),
        call(x(1, 4, 6), x(4, 2, 3), x(4), 2, 1, 2, 2, only="fc"),
        call(x(1, 2, 5), x(2, 2, 2), padding="same"),
        call(x(0, 2, 5), x(2, 2, 2), only="fci"),
    ],
    **CONV,
    covers=("convolution", "conv_input_gradient", "conv_weight_gradient"),
)
op(
    "conv2d",
    [
        call(x(2, 2, 4, 5), x(3, 2, 2, 3), x(3)),
        call(x(1, 2, 4, 4), x(2, 2, 1, 1)),
        call(x(4, 4, 3), x(2, 2, 3, 3), x(2), padding=1, groups=2),
        call(x(1, 3, 5, 4), x(3, 1, 3, 2), x(3), (2, 1), (1, 0), 1, 3),
        call(x(1, 1, 5, 5), x(1, 1, 2, 2), dilation=2, padding="same", only="fc"),
        call(x(1, 2, 4, 4), x(2, 2, 3, 3), None, 2, 2),
    ],
    **CONV,
)
op(
    "conv3d",
    [
        call(x(1, 2, 3, 3, 3), x(2, 2, 2, 2, 2), x(2)),
        call(x(1, 3, 2, 3), x(2, 1, 1, 2, 2), stride=(1, 2, 1), padding=1),
    ],
    **CONV,
)
op(
    "conv_transpose1d",
    [
        call(x(2, 3, 4), x(3, 2, 2), x(2)),
        call(x(4, 3), x(4, 1, 3), x(2), 2, 1, 1, 2),
        call(x(1, 2, 3), x(2, 1, 2), dilation=2),
        call(x(1, 1, 4), x(1, 2, 1), None, 1, 0, 2, 1, 3),
    ],
    **CONV | {"dtypes": "fc"},
    covers=("conv_transpose",),
)
op(
    "conv_transpose2d",
    [
        call(x(1, 2, 3, 3), x(2, 2, 2, 2), x(2)),
        call(x(1, 2, 2, 3), x(2, 1, 3, 2), None, (2, 1), (1, 0), (1, 0), 2),
        call(x(1, 1, 2, 2), x(1, 1, 2, 2), None, (2, 1), 1, (3, 2), 1, (4, 3)),
    ],
    **CONV | {"dtypes": "fc"},
)
op("conv_transpose3d", [call(x(1, 2, 2, 1, 2), x(2, 1, 2, 2, 1), x(1), 2)], **CONV | {"dtypes": "fc"})
op(
    "convolution",
    [
        call(x(1, 2, 4), x(3, 2, 2), x(3), (2,), (1,), (1,), False, (0,), 1),
        call(x(1, 2, 4), x(2, 3, 2), None, (2,), (1,), (1,), True, (1,), 1, only="f"),
    ],
    **CONV | {"dtypes": "fi", "grad": "f"},
)
op("conv_tbc", [call(x(4, 2, 3), x(2, 3, 2), x(2), 1)], **FUNCTIONAL, dtypes="s", grad="s")
for _name in ("conv1d", "conv2d", "conv3d"):
    functional(
        _name, [call(x(*(1, 1, 2, 2, 2)[: int(_name[4]) + 2]), x(*(1, 1, 1, 1, 1)[: int(_name[4]) + 2]))]
    )
    functional(
        _name.replace("v", "v_transpose"),
        [call(x(*(1, 1, 2, 2, 2)[: int(_name[4]) + 2]), x(*(1, 1, 1, 1, 1)[: int(_name[4]) + 2]))],
    )
functional("conv_tbc", [call(x(2, 1, 1), x(1, 1, 1), x(1))], dtypes="s", grad="s")
functional(
    "unfold",
    [call(x(2, 2, 3, 4), 2), call(x(1, 4, 4), (2, 3), 1, 1, 2), call(x(1, 1, 4, 4), 2, dilation=2)],
    dtypes="fcb",
    grad="fc",
    covers=("im2col",),
)
functional(
    "fold",
    [call(x(2, 8, 6), (3, 4), 2), call(x(6, 6), (4, 4), (2, 3), 1, 1, 2)],
    dtypes="fcb",
    grad="fc",
    covers=("col2im",),
)

# Maxima
POOL: dict[str, Any] = {"dtypes": "fi"}
functional(
    "max_pool1d",
    [
        call(x(2, 3, 6, **DISTINCT), 2),
        call(x(3, 7, **DISTINCT), 3, 2, 1),
        call(x(1, 1, 7, **DISTINCT), 2, 2, 0, 2, True),
        call(x(1, 2, 6, **DISTINCT), 2, return_indices=True),
    ],
    dtypes="f",
    covers=("max_pool1d", "max_pool1d_with_indices", "max_pool1d_gradient"),
)
functional(
    "max_pool2d",
    [
        call(x(2, 2, 4, 4, **DISTINCT), 2),
        call(x(2, 5, 5, **DISTINCT), 3, 2, 1),
        call(x(1, 1, 5, 7, **DISTINCT), (2, 3), (2, 1), (1, 0), (1, 2), True),
        call(x(1, 1, 4, 5, **DISTINCT), 3, 1, return_indices=True),
        call(x(0, 1, 4, 4), 2),
    ],
    **POOL,
    covers=(
        "max_pool2d",
        "max_pool2d_with_indices",
        "max_pool2d_gradient",
        "max_pool_scatter",
        "max_pool_gather",
    ),
)
functional(
    "max_pool3d",
    [
        call(x(1, 2, 3, 4, 3, **DISTINCT), 2, 1),
        call(x(1, 4, 3, 4, **DISTINCT), (2, 3, 2), 2, 1, return_indices=True),
    ],
    **POOL,
    covers=("max_pool3d", "max_pool3d_with_indices", "max_pool3d_gradient"),
)
SHAPES = {1: (2, 2, 5), 2: (1, 2, 5, 4), 3: (1, 1, 4, 3, 5)}
for _dims, _shape in SHAPES.items():
    _full = x(*_shape, **DISTINCT)
    functional(f"max_pool{_dims}d_with_indices", [call(_full, 2, 1)], dtypes="f")
    functional(
        f"adaptive_max_pool{_dims}d",
        [call(_full, 2), call(x(*_shape[1:], **DISTINCT), (3,) * _dims), call(_full, 3, return_indices=True)],
        covers=(f"adaptive_max_pool{_dims}d",),
    )
    functional(f"adaptive_max_pool{_dims}d_with_indices", [call(_full, 2)])
    functional(
        f"adaptive_avg_pool{_dims}d",
        [call(x(*_shape), 2), call(x(*_shape[1:]), (3,) * _dims), call(x(*_shape), 1), call(x(*_shape), 7)],
        covers=(f"adaptive_avg_pool{_dims}d",),
    )
    functional(
        f"avg_pool{_dims}d",
        [
            call(x(*_shape), 2),
            call(x(*_shape[1:]), 3, 2, 1),
            call(x(*_shape), 3, 2, 1, True, False),
            *([call(x(*_shape), 2, 1, divisor_override=3)] if _dims > 1 else []),
        ],
        dtypes="s" if _dims == 3 else "f",
        covers=(f"avg_pool{_dims}d",),
    )
    functional(
        f"lp_pool{_dims}d",
        [call(x(*_shape, low=0.3, high=2.0), 2, 2), call(x(*_shape, low=0.3, high=2.0), 3.0, 2, 1, True)],
        dtypes="s",
        grad="s",
    )
op("max_pool1d", [call(x(1, 6, **DISTINCT), 2)], **FUNCTIONAL, dtypes="f", grad="f")
op("max_pool2d", [call(x(1, 4, 4, **DISTINCT), 2)], **FUNCTIONAL, dtypes="fi", grad="f")
op("max_pool3d", [call(x(1, 2, 4, 4, **DISTINCT), 2)], **FUNCTIONAL, dtypes="fi", grad="f")
op("max_pool1d_with_indices", [call(x(1, 6, **DISTINCT), 2)], **FUNCTIONAL, dtypes="f", grad="f")
op("avg_pool1d", [call(x(1, 6), 2)], **FUNCTIONAL, dtypes="f", grad="f")
op("adaptive_avg_pool1d", [call(x(1, 6), 4)], **FUNCTIONAL, dtypes="f", grad="f")
op("adaptive_max_pool1d", [call(x(1, 6, **DISTINCT), 4)], **FUNCTIONAL, dtypes="f", grad="f")


# Padding
PAD: dict[str, Any] = FUNCTIONAL | {"dtypes": "fcib", "grad": "fc"}
op(
    "constant_pad_nd",
    [
        call(x(2, 3), (1, 2)),
        call(x(2, 3), (1, -1, -1, 2), 3),
        call(x(3), (-1, -1)),
        call(x(2, 2, 2), (0, 0, 1, 0)),
    ],
    **PAD,
)
functional(
    "pad",
    [
        call(x(2, 3), (1, 2)),
        call(x(2, 3), (1, -1, 0, 1), value=1),
        call(x(2, 4), (3, 2), mode="reflect"),
        call(x(1, 3, 4), (2, -1, 1, 2), mode="reflect"),
        call(x(1, 2, 2, 3), (1, 1, 1, 0, 1, 1), mode="reflect"),
        call(x(2, 4), (3, -2), mode="replicate"),
        call(x(1, 2, 3, 4), (2, -1, 1, 3), mode="replicate"),
        call(x(1, 1, 2, 2, 3), (1, 1, 1, 0, 1, 1), mode="replicate"),
        call(x(2, 4), (3, 2), mode="circular"),
        call(x(1, 3, 4), (2, -1, 1, 2), mode="circular"),
        call(x(1, 2, 2, 3), (1, 1, 1, 0, 1, 1), mode="circular"),
    ],
    dtypes="fci",
    grad="fc",
    covers=tuple(f"{kind}_pad{n}d" for kind in ("reflection", "replication", "circular") for n in (1, 2, 3)),
)

# Resizing
functional(
    "interpolate",
    [
        call(x(1, 2, 5), 3),
        call(x(1, 2, 5), scale_factor=1.7, mode="nearest-exact"),
        call(x(1, 2, 5), 8, mode="linear"),
        call(x(1, 2, 5), 3, mode="linear", align_corners=True),
        call(x(1, 1, 3, 4), scale_factor=(2, 1.5)),
        # The factor counts even where the sizes alone would say something else.
        call(x(1, 1, 4, 9), scale_factor=1.1),
        call(x(1, 1, 3, 4), (2, 5), mode="nearest-exact"),
        call(x(1, 1, 3, 4), (5, 2), mode="bilinear"),
        call(x(1, 1, 3, 4), scale_factor=2.3, mode="bilinear", recompute_scale_factor=True),
        call(x(1, 1, 3, 4), (4, 3), mode="bilinear", align_corners=True),
        call(x(1, 1, 3, 4), (5, 2), mode="bicubic"),
        call(x(1, 1, 3, 4), (5, 2), mode="bicubic", align_corners=True),
        call(x(1, 1, 5, 4), (3, 6), mode="bilinear", antialias=True, only="s"),
        call(x(1, 1, 5, 4), (3, 6), mode="bicubic", antialias=True, only="s"),
        call(x(1, 1, 7, 4), (3, 6), mode="lanczos", antialias=True, only="s"),
        call(x(1, 1, 3, 4), (2, 5), mode="area"),
        call(x(1, 1, 2, 3, 2), 3),
        call(x(1, 1, 2, 3, 2), scale_factor=1.5, mode="nearest-exact"),
        call(x(1, 1, 2, 3, 2), (3, 2, 4), mode="trilinear"),
        call(x(1, 1, 2, 3, 2), 4, mode="trilinear", align_corners=True),
    ],
    covers=(
        "upsample_linear1d",
        "upsample_bilinear2d",
        "upsample_trilinear3d",
        "upsample_bicubic2d",
        "upsample_bilinear2d_aa",
        "upsample_bicubic2d_aa",
        "upsample_lanczos2d_aa",
        *(f"upsample_nearest{exact}{n}d" for exact in ("", "_exact") for n in (1, 2, 3)),
    ),
)
SHUFFLE: dict[str, Any] = FUNCTIONAL | {"dtypes": "fcib", "grad": "fc"}
for _prefix in ("", "nn.functional."):
    op(f"{_prefix}pixel_shuffle", [call(x(2, 4, 2, 3), 2), call(x(9, 1, 1), 3)], **SHUFFLE)
    op(f"{_prefix}pixel_unshuffle", [call(x(2, 1, 4, 2), 2), call(x(1, 3, 3), 3)], **SHUFFLE)
    op(f"{_prefix}channel_shuffle", [call(x(1, 4, 2), 2), call(x(2, 6, 1, 2), 3)], **SHUFFLE)
    op(f"{_prefix}native_channel_shuffle", [call(x(1, 4, 2), 2)], **SHUFFLE | {"grad": ""})

# Fractional windows lie where the samples say; unpooling wants indices that do not repeat.
UNIT: dict[str, Any] = {"low": 0.0, "high": 0.99, "grad": False}
for _dims, _shape in {2: (2, 2, 6, 7), 3: (1, 2, 5, 5, 6)}.items():
    _samples = Input((_shape[0], 2, _dims), **UNIT)
    _call = call(
        x(*_shape, **DISTINCT), 2, output_size=3, return_indices=True, _random_samples=_samples, only="f"
    )
    for _suffix in ("", "_with_indices"):
        functional(f"fractional_max_pool{_dims}d{_suffix}", [_call], covers=(f"fractional_max_pool{_dims}d",))
functional(
    "max_unpool1d",
    [
        call(x(2, 1, 2), index(1, 2, 0, 3, shape=(2, 1, 2)), 2),
        call(x(1, 2), index(0, 4, shape=(1, 2)), 2, output_size=(5,)),
    ],
    dtypes="f",
    covers=("max_unpool",),
)
functional(
    "max_unpool2d",
    [
        call(x(1, 1, 2, 2), index(0, 3, 9, 14, shape=(1, 1, 2, 2)), 2),
        call(x(1, 1, 2), index(3, 2, shape=(1, 1, 2)), (3, 2), 2, (1, 0)),
    ],
    dtypes="f",
)
functional("max_unpool3d", [call(x(1, 1, 1, 2), index(0, 3, shape=(1, 1, 1, 2)), 2)], dtypes="f")


def _quietly(name: str) -> Any:
    """A function that warns that it is deprecated, without the warning."""

    def run(lib: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(lib.nn.functional, name)(*args, **kwargs)

        return function

    return run


for _name in ("upsample", "upsample_nearest", "upsample_bilinear"):
    _calls = [call(x(1, 1, 2, 3), scale_factor=2), call(x(1, 1, 2, 3), (3, 2))]
    functional(_name, _calls, run=_quietly(_name))

# Sampling at points away from the kinks between pixels
IMAGE, VOLUME = x(1, 2, 4, 5), x(1, 1, 3, 4, 3)
POINTS, POINTS_3D = x(1, 2, 3, 2, low=-1.35, high=1.35), x(1, 1, 2, 2, 3, low=-1.35, high=1.35)
GRID: dict[str, Any] = FUNCTIONAL | {"dtypes": "f", "grad": "s", "tolerance": 50}
op(
    "nn.functional.grid_sample",
    [
        call(IMAGE, POINTS, mode, padding, align)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding, align in (
            ("zeros", True),
            ("border", False),
            ("reflection", True),
            ("reflection", False),
        )
    ]
    + [call(VOLUME, POINTS_3D, mode, "zeros", False) for mode in ("bilinear", "nearest")],
    **GRID,
)
op(
    "grid_sampler",
    [call(IMAGE, POINTS, 0, 0, False)],
    **GRID,
    covers=(
        "pick_weighted",
        "spread_weighted",
        "pick_products",
        "grid_terms",
        "grid_gradient",
        "grid_sample",
        "grid_sample_gradient",
        "grid_slopes",
    ),
)
op("grid_sampler_2d", [call(IMAGE, POINTS, 2, 1, False)], **GRID)
op("grid_sampler_3d", [call(VOLUME, POINTS_3D, 0, 2, True)], **GRID)
op("affine_grid_generator", [call(x(2, 2, 3), (2, 1, 3, 4), False, only="s")], **(GRID | {"dtypes": "s"}))
functional(
    "affine_grid",
    [call(x(1, 2, 3), (1, 1, 3, 1 + align), align_corners=align) for align in (True, False)]
    + [call(x(1, 3, 4), (1, 2, 2, 3, 2), align_corners=False)],
    dtypes="s",
)
