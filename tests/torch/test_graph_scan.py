"""The graphs that op_db's operations record, walked in both libraries: names, edges and saved values.

DIFFER lists the operations whose graphs are not torch's in every sample, by what is worst about them and
why. One that has become better than listed fails, so that the list stays true.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from graphs import Drawing, differences
from opdb import ENTRIES, Absent, Carrier, Unfit, attempt, ours, samples, supported, tensors_in

import rushlight
from rushlight.autograd._saved_table import SHOWN

COUNT = 8  # samples of each dtype

# name: the last node has another name. saved: it does not show all that torch saves, or shows it otherwise.
# steps: further behind, the operation is composed of other steps than in torch.
WORST = {"last name": "name", "last saved": "saved"} | dict.fromkeys(
    ("edges", "inner name", "inner saved"), "steps"
)
DIFFER = {
    ("name", "torch composes complex convolutions of real ones"): """
        nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d
        nn.functional.conv_transpose2d nn.functional.conv_transpose3d
    """,
    ("name", "one kernel where torch goes another way for these sizes"): """
        nn.functional.ctc_loss nn.functional.scaled_dot_product_attention
    """,
    ("saved", "no derivative here needs the value, and it is not kept"): """
        _native_batch_norm_legit _softmax_backward_data
        max_pool2d_with_indices_backward nn.functional.embedding_bag
        normal
        _upsample_bilinear2d_aa
    """,
    ("saved", "a norm of one element, a window, an open end that can be told in two ways"): """
        fft.ifft fft.ifft2 fft.ihfft2 fft.ihfftn nn.functional.avg_pool2d slice
    """,
    ("saved", "equal elements, signs of vectors"): """
        masked.median pca_lowrank svd_lowrank
    """,
    ("saved", "the last step is taken from others than in torch"): """
        cumulative_trapezoid einsum fft.hfft2 fft.hfftn istft linalg.matrix_norm
        nn.functional.cross_entropy nn.functional.linear_cross_entropy nn.functional.rms_norm
        stft
    """,
    ("steps", "composed of other steps"): """
        cov fft.fft2 fft.fftn fft.hfft fft.ifftn fft.ihfft
        gradient kron linalg.lu
        lu_unpack nanquantile
        nn.functional.cosine_embedding_loss
        nn.functional.local_response_norm
        nn.functional.pad.circular
        nn.functional.poisson_nll_loss quantile special.ndtr split_with_sizes_copy
        trapezoid trapz unbind_copy
    """,
}


def graphs(entry: str) -> Iterator[tuple[str, Drawing, Drawing]]:
    """What each sample records: here and in torch."""
    op = ENTRIES[entry]
    for dtype in ("float64", "complex128"):
        if not supported(op, "grad", dtype):
            continue
        for number, sample in enumerate(samples(op, dtype, COUNT, requires_grad=True)):
            carry = Carrier()
            theirs_args, theirs_kwargs = (sample.input, *sample.args), dict(sample.kwargs)
            try:
                args, kwargs = carry(theirs_args), carry(theirs_kwargs)
                function = ours(op.op, op.name)
            except (Unfit, Absent):
                continue
            torch.manual_seed(0)
            theirs, refusal = attempt(op.op, *theirs_args, **theirs_kwargs)
            rushlight.manual_seed(0)
            mine, error = attempt(function, *args, **kwargs)
            if refusal is not None or error is not None:
                continue
            drawings = []
            for lib, result, which in ((rushlight, mine, 0), (torch, theirs, 1)):
                drawing = Drawing([pair[which] for pair in carry.leaves])
                for tensor in tensors_in(result, lib.Tensor):
                    drawing.add(tensor.grad_fn)
                drawings.append(drawing)
            yield f"{dtype}[{number}]", drawings[0], drawings[1]


def found(entry: str) -> Iterator[tuple[str, str, str]]:
    """(sample, kind, what) of every difference."""
    for sample, mine, theirs in graphs(entry):
        for kind, what in differences(mine, theirs):
            yield sample, kind, what


def listed() -> dict[str, str]:
    return {entry: kind for (kind, _), entries in DIFFER.items() for entry in entries.split()}


LISTED = listed()


@pytest.mark.parametrize("entry", ENTRIES)
def test_graph(entry: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differs = list(found(entry))
    kinds = {WORST[kind] for _, kind, _ in differs}
    worst = next((kind for kind in ("name", "saved", "steps") if kind in kinds), None)
    told = [" ".join(difference)[:300] for difference in differs if WORST[difference[1]] == worst]
    assert worst == LISTED.get(entry), told[:1] or "the same now: take it off the list"


def test_nothing_unknown_is_listed() -> None:
    assert not LISTED.keys() - ENTRIES.keys()
    assert len(LISTED) == sum(len(entries.split()) for entries in DIFFER.values())


def test_names_of_saved_values_are_those_of_torch() -> None:
    for node, shown in SHOWN.items():
        names = dir(getattr(torch._C._functions, node))
        assert set(shown) == {name[7:] for name in names if name.startswith("_saved_")}, node
        assert {name for name in shown if shown[name]} == {
            name[11:] for name in names if name.startswith("_raw_saved_")
        }, node
