"""Asked for a GPU, Rushlight answers as a torch that was built without: the same type of error, and words."""

import re
from typing import Any

import pytest
import torch

import rushlight

CALLS = [
    lambda t: t.ones(2).cuda(),
    lambda t: t.ones(2).to("cuda"),
    lambda t: t.ones(2).to("cuda:1"),
    lambda t: t.zeros(2, device="cuda"),
    lambda t: t.tensor([1.0], device="cuda"),
    lambda t: t.ones(2).new_zeros(2, device="cuda"),
    lambda t: t.zeros_like(t.ones(2), device="cuda"),
    lambda t: t.randperm(3, device="cuda"),
    lambda t: t.nn.Linear(2, 2).cuda(),
    lambda t: t.nn.Linear(2, 2, device="cuda"),
    lambda t: t.ones(2).type("torch.cuda.FloatTensor"),
    lambda t: t.sparse_coo_tensor([[0]], [1.0], (2,), device="cuda"),
    lambda t: t.Generator("cuda"),
    lambda t: t.cuda.current_device(),
    lambda t: t.cuda.synchronize(),
    lambda t: t.cuda.get_device_name(0),
    lambda t: t.cuda.Stream(),
    lambda t: t.cuda.Event(),
    lambda t: t.cuda.CUDAGraph(),
    lambda t: t.cuda.device(0).__enter__(),
    lambda t: t.cuda.device(-1).__enter__(),
    lambda t: t.ones(2).to(0),
]


def outcome(call: Any, library: Any) -> Any:
    try:
        return call(library)
    except Exception as error:
        return type(error), re.split(r"\.\s", str(error))[0].rstrip(".")


@pytest.mark.parametrize("call", CALLS)
def test_what_needs_a_gpu(call):
    assert outcome(call, rushlight) == outcome(call, torch)


@pytest.mark.filterwarnings("ignore:Use `:FutureWarning")
@pytest.mark.parametrize("arguments", [(), (0,), (None,)], ids=str)
@pytest.mark.parametrize("name", sorted(set(torch.accelerator.__all__) - {"set_stream"}))
def test_an_accelerator(name, arguments):
    """Of each of them that there is none, or that the arguments are wrong."""
    assert set(rushlight.accelerator.__all__) == set(torch.accelerator.__all__)

    def asked(t: Any) -> Any:
        found = getattr(t.accelerator, name)(*arguments)
        if name == "device_index":
            with found:
                return "entered"
        return found

    assert outcome(asked, rushlight) == outcome(asked, torch)


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_default_that_is_not_there(device):
    def answers(t: Any) -> list:
        t.set_default_device(device)
        try:
            calls = [lambda t: str(t.get_default_device()), lambda t: t.zeros(1), lambda t: t.nn.Linear(1, 1)]
            return [outcome(call, t) for call in calls]
        finally:
            t.set_default_device(None)

    assert answers(rushlight) == answers(torch)
    with (
        rushlight.device(device),
        pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"),
    ):
        rushlight.ones(1)
    assert rushlight.ones(1).device.type == "cpu"
