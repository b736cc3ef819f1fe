"""Corners of training that need no torch to be checked."""

import io
import warnings

import pytest

import rushlight as torch
from rushlight.utils.data import IterDataPipe
from rushlight.utils.data.datapipes.iter import IterableWrapper
from rushlight.utils.data.datapipes.utils.common import StreamWrapper


def test_a_functional_step_moves_what_it_is_given():
    x, grad, buffers = torch.ones(2), torch.tensor([1.0, -1.0]), [None]
    options = {"weight_decay": 0, "momentum": 0.9, "dampening": 0, "nesterov": False, "maximize": False}
    torch.optim.sgd.sgd([x], [grad], buffers, lr=0.5, **options)
    assert x.tolist() == [0.5, 1.5]
    assert buffers[0].tolist() == [1.0, -1.0]


def test_a_functional_step_is_recorded_by_nobody():
    x = torch.ones(2, requires_grad=True)
    options = {"weight_decay": 0, "momentum": 0, "dampening": 0, "nesterov": False, "maximize": False}
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.optim.sgd.sgd([x], [torch.ones(2)], [], lr=0.5, **options)


def test_a_scaler_hands_its_scale_to_a_fused_step():
    x = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([x], lr=0.5, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(x.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert x.tolist() == [0.5, 0.5]
    assert x.grad.tolist() == [1.0, 1.0]
    assert not hasattr(optimizer, "found_inf")


def test_a_pipe_may_be_its_own_iterator():
    class Counting(IterDataPipe):
        def __iter__(self):
            self.i = 0
            return self

        def __next__(self):
            self.i += 1
            if self.i > 2:
                raise StopIteration
            return self.i

    pipe = Counting()
    assert list(pipe) == list(pipe) == [1, 2]
    assert pipe._number_of_samples_yielded == 2
    first = iter(pipe)
    assert next(iter(pipe)) == 1
    with pytest.raises(RuntimeError, match="has been invalidated"):
        next(first)


def test_streams_close_with_the_last_of_their_children():
    parent = StreamWrapper(io.BytesIO(b"a"))
    child = StreamWrapper(io.BytesIO(b"b"), parent_stream=parent)
    parent.autoclose()
    assert not parent.closed
    StreamWrapper.close_streams([{"child": child}])
    assert parent.closed


def test_frames_of_any_library_flow_through_pipes():
    from rushlight.utils.data.datapipes.dataframe import dataframe_wrapper

    class Rows:
        create_dataframe = staticmethod(lambda data, columns: [dict(zip(columns, row)) for row in data])
        iterate = staticmethod(lambda frame: (tuple(row.values()) for row in frame))
        concat = staticmethod(lambda frames: [row for frame in frames for row in frame])
        get_item = staticmethod(lambda frame, i: frame[i : i + 1])
        get_len = staticmethod(len)

    dataframe_wrapper.set_df_wrapper(Rows)
    try:
        frames = IterableWrapper(range(4))._to_dataframes_pipe(columns=["i"], dataframe_size=3)
        assert list(frames) == [(0,), (1,), (2,), (3,)]
        assert sorted(frames.shuffle()) == list(frames)
    finally:
        dataframe_wrapper.set_df_wrapper(dataframe_wrapper.PandasWrapper)


def test_forbidden_kernels_of_attention_are_refused():
    x = torch.ones(1, 1, 2, 2)
    backend = torch.nn.attention.SDPBackend
    attend = torch.nn.functional.scaled_dot_product_attention
    refused = pytest.raises(RuntimeError, match="No viable backend")
    with torch.nn.attention.sdpa_kernel(backend.CUDNN_ATTENTION), refused:
        attend(x, x, x)
    refused = pytest.raises(RuntimeError, match="No available kernel")
    with torch.nn.attention.sdpa_kernel(backend.FLASH_ATTENTION), warnings.catch_warnings(), refused:
        warnings.simplefilter("ignore")
        attend(x, x, x, dropout_p=0.5)
    assert attend(x, x, x).shape == x.shape
    assert torch.backends.cuda.SDPBackend is backend


def test_a_graph_from_before_a_swap_raises_when_it_is_run():
    x, y = torch.ones(2, requires_grad=True), torch.zeros(3, requires_grad=True)
    loss = (x * 2).sum()
    torch.utils.swap_tensors(x, y)
    assert (x.shape, y.shape) == ((3,), (2,))
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    assert y.grad is None


def test_an_optimizer_is_lent_other_parameters():
    x = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([x], lr=0.1)
    x.grad = torch.ones(2)
    optimizer.step()
    kept, other = x.tolist(), torch.full((2,), 3.0)
    other.grad = torch.ones(2)
    state = optimizer.state_dict()
    state["state"] = {0: {key: value.clone() for key, value in state["state"][0].items()}}
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"x": other}, state):
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 9
    assert x.tolist() == kept
    assert other.tolist() == pytest.approx([2.9, 2.9])
    assert (optimizer.param_groups[0]["lr"], optimizer.state[x]["step"], state["state"][0]["step"]) == (
        0.1,
        1,
        2,
    )
    lent = torch.optim.swap_in_optimizer_params_and_state(optimizer, {}, state)
    with pytest.raises(RuntimeError, match="requires the explicit parameter state"), lent:
        pass


def test_what_is_allowed_under_another_name_is_told_with_it():
    class Allowed:
        pass

    with torch.serialization.safe_globals([(Allowed, "some.Name"), Allowed]):
        assert torch.serialization.get_safe_globals() == [(Allowed, "some.Name"), Allowed]
    assert torch.serialization.get_safe_globals() == []


@pytest.mark.parametrize("name", ["not a real device", "cpu 1", "c-p"])
def test_a_device_is_named_by_letters(name):
    with pytest.raises(RuntimeError, match=f"Invalid device string: '{name}'"):
        torch.autocast(device_type=name)
