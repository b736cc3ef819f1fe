"""Samples of the Fourier transforms."""

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
    # torch leaves the inverse half transforms in an order of its own.
    op(f"fft.{name}", SEVERAL, **REAL, same_strides=False)
SHIFTS = [call(x(5)), call(x(2, 3)), call(x(2, 3), dim=1), call(x(2, 3, 2), dim=(0, 2))]
for name in ("fftshift", "ifftshift"):
    op(f"fft.{name}", SHIFTS, method=False)
