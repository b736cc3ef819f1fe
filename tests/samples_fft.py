"""Samples of the Fourier transforms."""

import warnings

from families import op, x
from sampling import call

ONE = [
    call(x(4)),
    call(x(3, 5)),
    call(x(2, 3), dim=0),
    call(x(4), 6, norm="ortho"),
    call(x(2, 5), 3, 1, "forward"),
    call(x(3, 2, 4), n=4, dim=1),
]
SEVERAL = [
    call(x(2, 3)),
    call(x(2, 3, 4), dim=(0, 2)),
    call(x(2, 3), norm="ortho"),
    call(x(3, 3), s=(2, 4), norm="forward"),
    call(x(2, 3), s=(-1, 4), dim=(0, 1)),
]
COMPLEX = {"dtypes": "scib", "grad": "sc", "method": False, "tolerance": 20.0}
REAL = COMPLEX | {"dtypes": "sib", "grad": "s"}

for name in ("fft", "ifft", "irfft", "hfft"):
    op(f"fft.{name}", ONE, **COMPLEX, covers=("fft_c2c",) if name == "fft" else ("fft_c2r",))
for name in ("rfft", "ihfft"):
    op(f"fft.{name}", ONE, **REAL, covers=("fft_r2c",))
for name in ("fftn", "fft2", "ifftn", "ifft2", "irfftn", "irfft2", "hfftn", "hfft2"):
    op(f"fft.{name}", SEVERAL, **COMPLEX)
for name in ("rfftn", "rfft2", "ihfftn", "ihfft2"):
    op(f"fft.{name}", SEVERAL, **REAL)
SHIFTS = [call(x(5)), call(x(2, 3)), call(x(2, 3), dim=1), call(x(2, 3, 2), dim=(0, 2))]
for name in ("fftshift", "ifftshift"):
    op(f"fft.{name}", SHIFTS, method=False)


def windowed(name):
    def run(lib):
        def function(*args, **kwargs):
            with warnings.catch_warnings():  # some samples leave the window out, or ask for the old result
                warnings.simplefilter("ignore")
                if name == "istft" and "window" in kwargs:  # that of a real signal is real
                    kwargs["window"] = kwargs["window"].real.abs()
                return getattr(lib, name)(*args, **kwargs)

        return function

    return run


op(
    "stft",
    [
        call(x(12), 4, return_complex=True),
        call(x(2, 9), 4, 2, window=x(4), return_complex=True),
        call(x(9), 4, win_length=3, window=x(3), center=False, return_complex=True),
        call(x(9), 4, 2, pad_mode="constant", normalized=True, onesided=False, return_complex=True),
        call(x(9), 4, return_complex=False, only="s"),
        call(x(16), 8, 4, 4, center=False, align_to_window=True, return_complex=True),
    ],
    run=windowed("stft"),
    **COMPLEX | {"dtypes": "sc"},
)
HANN = {"low": 0.5, "high": 1.5}
op(
    "istft",
    [
        call(x(3, 5), 4, window=x(4, **HANN), only="c"),
        call(x(2, 3, 4), 4, 2, normalized=True, only="c"),
        call(x(3, 5), 4, 1, 3, window=x(3, **HANN), length=3, only="c"),
        call(x(4, 4), 4, 2, onesided=False, return_complex=True, only="c"),
        call(x(4, 4), 4, 2, center=False, length=12, only="c"),
    ],
    run=windowed("istft"),
    dtypes="c",
    grad="c",
    method=False,
    tolerance=20.0,
)
