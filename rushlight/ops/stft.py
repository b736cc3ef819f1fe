"""Short-time Fourier transforms: stft() cuts a signal into windows and transforms each, istft() adds them up
again. Composed of unfold, the transforms of fft.py and unfold's adjoint, so differentiable as they are."""

from __future__ import annotations

from rushlight import _C, _signatures
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once
from rushlight.ops import fft
from rushlight.ops._examples import somewhere
from rushlight.ops._public import (
    FUNCTIONS,
    Tensor,
    invalid_combination,
    legacy_name,
    public,
    stumble,
    type_name,
    whole,
)
from rushlight.ops.shape import _unfold_backward

ops = _C.ops

_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied{}To suppress this warning and use a "
    "rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


def _given(value):
    return "None" if value is None else str(int(value))


# What torch hands its native stft.
_NATIVE = (
    "T input,i n_fft,i? hop_length,i? win_length,T? window,b normalized,b? onesided,b? return_complex,"
    "b? align_to_window"
)


def _check_arguments(*given):
    """torch's error for arguments of other types, of which the overloads of its stft take none."""
    try:
        _signatures.check_call("stft", _NATIVE, *given)
    except TypeError:
        raise invalid_combination("stft", given, _signatures.shown(_NATIVE)) from None


def _window_text(window):
    return "None" if window is None else f"{legacy_name(window)}{{{list(window.shape)}}}"


def _window(window, n_fft, win_length, dtype, device):
    """The window, or ones, with zeros on both sides up to n_fft."""
    if window is None:
        window = FUNCTIONS["ones"]((win_length,), dtype=dtype, device=device)
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return window
    zeros = window.new_zeros
    return FUNCTIONS["cat"]((zeros(left), window, zeros(n_fft - win_length - left)), 0)


def _centered(input, n_fft, pad_mode):
    """The signal padded so that the first window lies around its first point."""
    from rushlight.nn.functional import pad

    shape = (1,) * (3 - input.ndim) + tuple(input.shape)
    if not isinstance(pad_mode, str):
        _signatures.check_call("pad", "o input,o pad,s mode", input, n_fft, pad_mode)
    half = int(n_fft // 2)
    padded = pad(input.reshape(shape), (half, half), pad_mode)
    return padded.reshape(padded.shape[-input.ndim :])


def _complex_wanted(return_complex, complex_result):
    """Whether the result is to be complex, or pairs of numbers."""
    if return_complex is None and not complex_result:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require "
            "that return_complex=True in a future PyTorch release."
        )
    if return_complex is not None and not return_complex:
        warn_once(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
            "complex tensors for all inputs, and return_complex=False will raise an error.\nNote: you can "
            "still call torch.view_as_real on the complex output to recover the old return format."
        )
    return True if return_complex is None else return_complex


@public
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The transforms of windows of n_fft points that begin every hop_length points.

    The result is complex, of shape (..., frequencies, windows). With `center` the signal is padded so that
    the first window lies around its first point.

    >>> signal, window = rushlight.ones(16), rushlight.ones(8)
    >>> rushlight.stft(signal, 8, window=window, return_complex=True).shape
    torch.Size([5, 9])
    """
    if center:
        stumble(input, "dim")
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        input = _centered(input, n_fft, pad_mode)
    _check_arguments(
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
    )
    n_fft, hop_length, win_length = whole(n_fft), whole(hop_length), whole(win_length)
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if window is None:
        warn_once(
            _NO_WINDOW.format(
                ",which is known to cause spectral leakage. Other windows such as torch.hann_window or "
                "torch.hamming_window are recommended to reduce spectral leakage."
            )
        )

    def require(holds, message):
        if not holds:
            raise RuntimeError(
                f"stft({legacy_name(input)}{list(input.shape)}, n_fft={n_fft}, "
                f"hop_length={hop_length}, win_length={win_length}, window={_window_text(window)}, "
                f"normalized={int(normalized)}, onesided={_given(onesided)}, "
                f"return_complex={_given(return_complex)}, align_to_window={_given(align_to_window)}) : "
                f"{message}"
            )

    complex_result = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    return_complex = _complex_wanted(return_complex, complex_result)
    require(
        input.dtype.is_floating_point or input.dtype.is_complex,
        "expected a tensor of floating point or complex values",
    )
    require(input.ndim in (1, 2), "expected a 1D or 2D tensor")
    length = input.shape[-1]
    require(0 < n_fft <= length, f"expected 0 < n_fft < {length}, but got n_fft={win_length}")
    require(hop_length > 0, f"expected hop_length > 0, but got hop_length={hop_length}")
    require(0 < win_length <= n_fft, f"expected 0 < win_length <= n_fft, but got win_length={win_length}")
    require(
        window is None or (window.ndim == 1 and window.shape[0] == win_length),
        f"expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
        f"{list(window.shape) if window is not None else []}",
    )
    if not center and align_to_window:
        left = (n_fft - win_length) // 2
        parts = [input.new_zeros((*input.shape[:-1], n)) for n in (left, n_fft - win_length - left)]
        input = FUNCTIONS["cat"]((parts[0], input, parts[1]), -1)
    single = input.ndim == 1
    if single:
        input = input.unsqueeze(0)
    frames = ops.unfold(input, 1, n_fft, hop_length)
    if window is not None or win_length < n_fft:
        frames = frames * _window(window, n_fft, win_length, input.dtype, input.device)
    if frames.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {type_name(frames.dtype)}")
    norm = "ortho" if normalized else None
    last = (frames.ndim - 1,)
    if onesided is None:
        onesided = not complex_result
    if onesided:
        if complex_result:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        result = fft.half_spectrum(fft.promoted(frames, False), last, norm, True)
    else:
        result = fft.transform(fft.promoted(frames, False), last, norm, True)
    result = result.transpose_(-1, -2)
    if single:
        result = result.squeeze_(0)
    return result if return_complex else ops.view_as_real(result)


def _overlap_added(frames, hop_length, total):
    """The sum of frames that begin every hop_length points."""
    shape = (*frames.shape[:-2], total)
    added = _unfold_backward(frames, shape, len(shape) - 1, frames.shape[-1], hop_length)
    return _C.name_node(added, "UnfoldBackwardBackward0")


def _frames_of(spectrum, n_fft, half, norm, return_complex):
    """The windows whose transforms are the rows of `spectrum`, or, if `half`, of which these are a half."""
    last = (spectrum.ndim - 1,)
    if return_complex:
        return fft.transform(spectrum, last, norm, False)
    if not half:
        spectrum = spectrum.narrow(-1, 0, n_fft // 2 + 1)
    return fft.from_half(spectrum, last, norm, False, n_fft)


@public
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal whose stft() is nearest to `input`, cut or padded to `length`.

    >>> signal, window = rushlight.arange(16.0), rushlight.ones(8)
    >>> spectrum = rushlight.stft(signal, 8, window=window, return_complex=True)
    >>> (rushlight.istft(spectrum, 8, window=window) - signal).abs().max() < 1e-5
    tensor(True)
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"istft(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if window is None:
        warn_once(
            _NO_WINDOW.format(".Please provide the same window used by stft to make the inversion lossless.")
        )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )

    def describe():
        return (
            f"istft(CPU{type_name(input.dtype)}Type{list(input.shape)}, n_fft={n_fft}, "
            f"hop_length={hop_length}, win_length={win_length}, window={_window_text(window)}, "
            f"center={int(center)}, normalized={int(normalized)}, onesided={_given(onesided)}, "
            f"length={_given(length)}, return_complex={int(return_complex)})"
        )

    def require(holds, message):
        if not holds:
            raise RuntimeError(f"{describe()} : {message}")

    if input.ndim < 2:
        n = input.ndim + 1  # torch counts real and imaginary parts as a dimension
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {-n - 1})"
        )
    frequencies, count = input.shape[-2:]
    require(input.numel() != 0, "input tensor cannot be empty.")
    require(input.ndim in (2, 3), f"expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}")
    half = frequencies != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if half else n_fft
    words = ("n_fft / 2 + 1", "True") if half else ("n_fft", "False")
    require(
        frequencies == wanted,
        f"expected the frequency dimension (3rd to the last) of the input tensor to match {words[0]} when "
        f"onesided={words[1]}, but got {frequencies}",
    )
    require(0 < hop_length <= win_length, "expected 0 < hop_length <= win_length")
    require(0 < win_length <= n_fft, "expected 0 < win_length <= n_fft")
    require(
        window is None or (window.ndim == 1 and window.shape[0] == win_length),
        "Invalid window shape. window has to be 1D and length of `win_length`",
    )
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    real = input.real.dtype
    single = input.ndim == 2
    spectrum = (input.unsqueeze(0) if single else input).mT
    frames = _frames_of(spectrum, n_fft, half, "ortho" if normalized else None, return_complex)
    window = _window(window, n_fft, win_length, frames.dtype if return_complex else real, input.device)
    total = n_fft + hop_length * (count - 1)
    signal = _overlap_added(frames * window, hop_length, total)
    weights = window.square().expand(count, n_fft)
    envelope = _overlap_added(weights, hop_length, total)
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = total - n_fft // 2 if center else total
    stop = min(end, total)
    signal, envelope = signal[..., start:stop], envelope[start:stop]
    if not envelope.numel():
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    if somewhere(~(envelope.detach().abs().min() > 1e-11)):
        raise RuntimeError(f"{describe()} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = signal / envelope
    if end > total:
        warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in "
            "the tail. Please check your center and hop_length settings."
        )
        signal = FUNCTIONS["cat"]((signal, signal.new_zeros((*signal.shape[:-1], end - total))), -1)
    return signal.squeeze(0) if single else signal
