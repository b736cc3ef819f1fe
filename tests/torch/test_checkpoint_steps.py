"""The steps of a checkpoint, put together by hand: the same values, counts and refusals in both libraries."""

import weakref
from importlib import import_module

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

CASES, case = collector()


def steps(torch):
    return import_module(f"{torch.__name__}.utils.checkpoint")


def recorded(torch, function, *args, early_stop=True, unpack_error_cb=None, again=None):
    C = steps(torch)
    frame = C._CheckpointFrame(again or function, early_stop, unpack_error_cb, C._default_meta_extractor)
    frame.save_inputs(*args)
    with C._checkpoint_hook(frame):
        result = function(*args)
    frame.forward_completed = True
    return frame, result


@case("a frame records, and runs again for what backward asks for")
def _(torch):
    x, runs = torch.ones(3, requires_grad=True), []

    def function(x, power):
        runs.append(torch.is_grad_enabled())
        return (x.exp() ** power).sin()

    frame, y = recorded(torch, function, x, 2)
    kept = len(frame.weak_holders), frame.x_metadatas, [type(a).__name__ for a in frame.get_inputs()]
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return *kept, runs, x.grad, frame.saved_args[1], [r() is None for r in frame.weak_holders]


@case("what saves less is told, and handed to who wants to say more")
def _(torch):
    C, x, asked = steps(torch), torch.ones(3, requires_grad=True), []

    def told(error):
        asked.append(str(error).splitlines()[0])
        raise ValueError("told") from error

    _, y = recorded(torch, lambda x: x.exp().sin(), x, again=lambda x: x.exp(), unpack_error_cb=told)
    refused = err(lambda: y.sum().backward()), asked
    _, y = recorded(torch, lambda x: x.exp(), x, early_stop=False, again=lambda x: x.exp().sin())
    return *refused, err(lambda: y.sum().backward()), issubclass(C.CheckpointError, RuntimeError)


@case("a run can be put into the holders of a frame")
def _(torch):
    C, x = steps(torch), torch.ones(3, requires_grad=True)
    frame, y = recorded(torch, lambda x: x.exp().sin(), x, early_stop=False)
    with C._recomputation_hook(weakref.ref(frame), 7):
        x.exp().sin()
    counted = frame.recomp_counter[7], [list(r().handles) for r in frame.weak_holders]
    frame.check_recomputed_tensors_match(7)
    with C._recomputation_hook(weakref.ref(frame), 8):
        x.exp()
    short = err(lambda: frame.check_recomputed_tensors_match(8))
    frame.ignore_saved_mismatch = True
    return *counted, short, frame.check_recomputed_tensors_match(8), y.grad_fn.name()


@case("a run for a frame that is gone is refused")
def _(torch):
    C, x = steps(torch), torch.ones(3, requires_grad=True)
    with C._recomputation_hook(lambda: None, 0):
        refused = err(lambda: x.exp())
    return refused[0], err(lambda: C._internal_assert(0))[0], C._internal_assert(1), C._Holder().handles


@case("the contexts of a checkpoint that explains itself")
def _(torch):
    contexts, tell = steps(torch)._get_debug_context_and_cb()
    return len(contexts()), callable(tell)


@case("batch statistics move once in each run, also where a run stops at what the layer keeps of its results")
def _(torch):
    found = []
    for after in ([], [torch.nn.Flatten()], [torch.nn.ReLU()]):
        for affine in (True, False):
            for stop in (True, False):
                torch.manual_seed(1)
                x = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
                layer = torch.nn.BatchNorm1d(2, affine=affine, dtype=torch.float64)
                with steps(torch).set_checkpoint_early_stop(stop):
                    y = steps(torch).checkpoint(torch.nn.Sequential(layer, *after), x, use_reentrant=False)
                y.square().sum().backward()
                found += [layer.num_batches_tracked, layer.running_mean, layer.running_var, x.grad]
    return found


@case("hooks that raise at a result do not keep batch statistics from moving, at an argument they do")
def _(torch):
    found = []
    for last in range(5):
        torch.manual_seed(1)
        layer, seen = torch.nn.BatchNorm1d(2), []

        def pack(x, last=last, seen=seen):
            seen.append(tuple(x.shape))
            if len(seen) == last:
                raise ValueError("enough")
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            said = err(lambda layer=layer: layer(torch.randn(3, 2, 4, requires_grad=True)))
        found += [said, seen, layer.running_mean, layer.running_var]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    ours, theirs = outcome(lambda: CASES[name](rushlight)), outcome(lambda: CASES[name](torch))
    assert ours == theirs
