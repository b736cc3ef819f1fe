"""What the test suites of libraries written for torch ask of it, a few lines each, run in both libraries."""

import array
import copy
import warnings

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


@case("memory lent by objects that are no arrays is shared")
def _(torch):
    numbers = array.array("f", [1.0, 2.0])
    shared, copied = torch.asarray(numbers), torch.asarray(numbers, copy=True)
    insisted = torch.asarray(numbers, copy=False)
    numbers[0] = 5.0
    whole = torch.asarray(array.array("i", [1, -2]), dtype=torch.int32)
    odd = [err(torch.asarray, each) for each in ("ab", {}, None, 1.5, range(2))]
    return shared, copied, insisted, whole, odd


@case("sequences that were not sorted are unpacked to rows in order, for which a dropout draws its mask")
def _(torch):
    rnn, found = torch.nn.utils.rnn, []
    for batch_first in (True, False):
        for is_sorted in (True, False):
            x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
            packed = rnn.pack_padded_sequence(x, torch.tensor([3, 2]), True, enforce_sorted=is_sorted)
            torch.manual_seed(0)
            padded, lengths = rnn.pad_packed_sequence(packed, batch_first, 1.0, 5)
            dropped = torch.nn.functional.dropout(padded)
            dropped.sum().backward()
            found.append((padded.detach(), padded.stride(), lengths, dropped.detach(), x.grad))
    return found


@case("the number of a device of which there is one is dropped")
def _(torch):
    places = ["cpu:0", "cpu:3", torch.device("cpu", 1), "meta:2"]
    made = [f(2, device=place).device for place in places for f in (torch.ones, torch.empty, torch.rand)]
    moved = [torch.ones(2).to(place).device for place in places]
    return made, moved, torch.nn.Linear(1, 1, device="cpu:1").weight.device, torch.device("cpu:1")


@case("a slice of a storage is its memory")
def _(torch):
    whole = torch.arange(6.0)
    storage = whole.untyped_storage()
    part = storage[4:16]
    inner = torch.empty(0).set_(part)
    inner[0] = 9
    sizes = [storage[a:b].nbytes() for a, b in [(3, 3), (2, 1), (-4, 100)]]
    return part.nbytes(), part.data_ptr() - storage.data_ptr(), inner, whole, sizes


@case("bytes of a storage that begin and end anywhere are an array of any dtype")
def _(torch):
    storage = torch.arange(24, dtype=torch.uint8).untyped_storage()
    parts, kinds = [slice(3, 10), slice(4, 20), slice(2, 8)], [torch.uint8, torch.bool]
    arrays = [torch.asarray(storage[part], dtype=kind) for part in parts for kind in kinds]
    arrays += [torch.asarray(storage[a:8], dtype=kind) for a, kind in [(4, torch.float32), (2, torch.half)]]
    kept = torch.asarray(storage[3:10], dtype=torch.uint8, copy=True)
    return arrays, kept, kept.data_ptr() - storage.data_ptr()


@case("what asks nobody has no function in its place")
def _(torch):
    ignored, replaced = torch.overrides.get_ignored_functions(), torch.overrides.get_testing_overrides()
    kinds = ["coo", "csr", "csc", "bsr", "bsc", "compressed"]
    makers = [getattr(torch, f"sparse_{kind}_tensor") for kind in kinds]
    return [f for f in ignored if f in replaced], [f in ignored for f in makers]


@case("what was detached in place before it was saved has a gradient")
def _(torch):
    scale = torch.full((1,), 2.0, requires_grad=True)
    x = torch.ones(2, 3, requires_grad=True).clone().detach_().requires_grad_(True)
    (x.T.unsqueeze(-1) / scale).sum().backward()
    return scale.grad, x.grad


def detached_after(torch, saved, detached):
    """Gradients where a product saved one tensor and one was detached in place after that."""
    scale = torch.full((1,), 2.0, requires_grad=True)
    leaf = torch.ones(2, 3, requires_grad=True)
    copy = leaf.clone()
    both = {"leaf": leaf, "copy": copy, "view": copy.T, "kept": copy.exp(), "taken": leaf.topk(2)[0]}
    result = (both[saved] / scale).sum()
    both[detached].detach_()
    result.backward()
    return scale.grad, leaf.grad


for _saved in ("leaf", "copy", "view", "kept", "taken"):
    for _detached in ("leaf", "copy", "kept", "taken"):
        CASES[f"{_saved} saved, {_detached} detached in place"] = (
            lambda torch, saved=_saved, detached=_detached: detached_after(torch, saved, detached)
        )


@case("the type Tensor is the one of the default dtype")
def _(torch):
    mask = torch.tensor([1, 0]) > 0
    kinds = [mask.type(kind).dtype for kind in (torch.Tensor, "torch.Tensor", "torch.ComplexDoubleTensor")]
    layers = [
        torch.nn.Linear(1, 1).double().type(kind).weight.dtype for kind in (torch.Tensor, torch.HalfTensor)
    ]
    torch.set_default_dtype(torch.float64)
    try:
        kinds.append(mask.type(torch.Tensor).dtype)
    finally:
        torch.set_default_dtype(torch.float32)
    wrong = [err(mask.type, kind) for kind in (torch.nn.Parameter, "Tensor", "torch.float32", int, 3)]
    return kinds, layers, wrong, err(torch.nn.Linear(1, 1).type, 3)


@case("what type checkers ask of classes at run time")
def _(torch):
    data = torch.utils.data
    named = [torch.distributions.Independent[torch.distributions.Normal], data.StackDataset[tuple]]
    named += [torch.nn.DataParallel[torch.nn.Linear], data.distributed.DistributedSampler[int]]
    return (
        [each.__args__[0].__name__ for each in named],
        torch.Size.__bases__,
        hasattr(torch.Size, "__orig_bases__"),
    )


@case("a conversion asked for by the layout is not named by it where it is refused")
def _(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once
        x, blocks = torch.ones(4, 2), torch.ones(4, 2).to_sparse_bsr((2, 1))
    wrong = [(torch.sparse_bsr, (3, 1)), (torch.sparse_bsc, (0, 1)), (torch.sparse_bsr, (2,))]
    said = [
        err(lambda each, to, block: each.to_sparse(layout=to, blocksize=block), x, to, b) for to, b in wrong
    ]
    said += [err(x.to_sparse_csr().to_sparse_bsr, (3, 1)), err(x.to_sparse_bsc, (3, 1))]
    csr = x.to_sparse_csr()
    said += [err(lambda: csr.to_sparse(layout=torch.sparse_bsr, blocksize=(3, 1)))]
    return (
        said,
        err(lambda: x.to_sparse(layout=torch.sparse_csr, dense_dim=1)),
        err(lambda: blocks.to_sparse_csr()),
    )


@case("a sparse gradient makes another one of indices and values")
def _(torch):
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1, 3, 1])).sum().backward()
    grad = table.weight.grad.coalesce()
    indices, values = grad._indices(), grad._values().pow(2).requires_grad_()
    given = [(indices, values, grad.size()), (indices, values.double()), (2, 3), (), (grad.size(),)]
    made = [grad.new(*each) for each in given] + [
        grad.new(size=(2, 1)),
        grad.new(indices=indices, values=values),
    ]
    wrong = [(values,), ([2, 2],), (indices, values, 2), (indices, values, 2, 2), (indices.int(), values)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once
        square = torch.ones(2, 2).to_sparse_csr()
    return made, [err(grad.new, *each).split(" - ")[0] for each in wrong], err(square.new, 2, 2)


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))


def test_a_slice_keeps_its_storage():
    part = rushlight.arange(1000.0).untyped_storage()[4000 - 8 :]
    rushlight.full((1000,), 7.0)
    assert rushlight.empty(0).set_(part).tolist() == [998.0, 999.0]


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor:UserWarning")  # said once
def test_sparse_types_make_sparse_tensors():
    made = rushlight.sparse.FloatTensor(rushlight.zeros(2, 1).long(), rushlight.ones(1))
    assert made.type() == "torch.sparse.FloatTensor" and isinstance(made, rushlight.sparse.FloatTensor)
    assert not isinstance(made, rushlight.FloatTensor)
    assert rushlight._dynamo.is_dynamo_supported() is rushlight._dynamo.is_inductor_supported() is False


def test_dir_and_star_bring_what_is_loaded_late():
    listed, missing = set(dir(rushlight)), object()
    found = [n for n in dir(torch) if n[0] != "_" and getattr(rushlight, n, missing) is not missing]
    assert len(found) > 800 and not set(found) - listed
    names = {}
    exec("from rushlight import *", names)
    assert {"save", "load", "autocast", "FloatStorage", "Tensor", "float32", "randn"} <= set(names)
    assert not {"nn", "testing", "torch", "linalg"} & set(names)


def test_a_compiled_module_stands_before_the_module():
    class Doubling(rushlight.nn.Module):
        factor = 2

        def __init__(self):
            super().__init__()
            self.linear = rushlight.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x) * self.factor

    module, x, called = Doubling(), rushlight.ones(1, 2), []
    compiled = rushlight.compile(module)
    assert isinstance(compiled, rushlight._dynamo.eval_frame.OptimizedModule) and compiled._orig_mod is module
    assert list(compiled.state_dict()) == ["_orig_mod.linear.weight", "_orig_mod.linear.bias"]
    assert [name for name, _ in compiled.named_modules()] == ["", "_orig_mod", "_orig_mod.linear"]
    assert str(compiled).startswith("OptimizedModule(\n  (_orig_mod): Doubling(")
    compiled.factor = 3
    assert module.factor == 3 and compiled.linear is module.linear and "linear" in dir(compiled)
    assert (
        not compiled.eval().training and not module.training and module.train().training and compiled.training
    )
    module.register_forward_hook(lambda *args: called.append("module"))
    compiled.register_forward_hook(lambda *args: called.append("compiled"))
    assert compiled(x).equal(module(x)) and called == ["module", "compiled", "module"]
    twin = copy.deepcopy(compiled)
    assert type(twin) is type(compiled) and twin._orig_mod is not module and twin.factor == 3
    with pytest.raises(AttributeError, match="'Doubling' object has no attribute 'absent'"):
        compiled.absent
    assert rushlight.compile(compiled) is compiled and rushlight.compile(module, disable=True) is module
    assert len(rushlight.compile(mode="default")(rushlight.nn.Sequential(module, module))) == 2
