"""What could end the process: objects that are found while they are being freed, chains of a hundred thousand
of them, memory that is not as long as it says, and native functions that are called as nobody does."""

import contextlib
import ctypes
import gc
import hashlib
import io
import itertools
import os
import signal
import struct
import sys
import threading
import warnings
import weakref

import numpy
import pytest

import rushlight as torch
from rushlight import _C, _warn

LONG = 100_000
SMALLEST = -(2**63)
CHANNELS, KERNEL = 9, (1269506615, 1614515597)
unfold = torch.nn.functional.unfold
IMAGES = torch.zeros(3, 2, 4, 3)


class Calls:
    """Something that runs code when it is asked for its value, or freed."""

    def __init__(self, code, value=1):
        self.code, self.value = code, value

    def __index__(self):
        self.code()
        return self.value


class CallsAtItsEnd(Calls):
    def __del__(self):
        self.code()


def test_an_accumulator_is_not_found_while_its_graph_is_being_freed():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    made = []
    for _ in range(3):
        c = a * b
        c.grad_fn.next_functions  # Python has seen the accumulators: they do not sleep
        c.grad_fn.metadata["last"] = CallsAtItsEnd(lambda: made.append(a * 2))
        del c
    assert len(made) == 3
    torch.stack(made).sum().backward()
    assert a.grad.tolist() == [6, 6, 6]


def chain_of_gradients(x):
    y = torch.zeros(1)
    y.grad = x
    return y


LINKS = {
    "grad": chain_of_gradients,
    "dlpack": torch.from_dlpack,
    "numpy": lambda x: torch.from_numpy(x.numpy()),
    "buffer": lambda x: torch.frombuffer(x.numpy(), dtype=torch.float32),
}


@pytest.mark.parametrize("link", LINKS)
def test_a_long_chain_is_freed(link):
    x = torch.zeros(1)
    for _ in range(LONG if link in ("grad", "dlpack") else LONG // 3):
        x = LINKS[link](x)
    del x


def test_a_chain_that_is_freed_tells_when_its_first_goes():
    told = []
    first = torch.zeros(1).as_subclass(type("Watched", (torch.Tensor,), {}))
    first.last = CallsAtItsEnd(lambda: told.append(1))
    x = chain_of_gradients(first)
    del first
    for _ in range(1000):
        x = chain_of_gradients(x)
    del x
    gc.collect()
    assert told == [1]


def test_an_attribute_may_be_nested_as_deeply_as_one_likes():
    nested = ()
    for _ in range(LONG):
        nested = (nested,)
    x = torch.zeros(3)
    x.attribute = nested
    assert x.attribute is nested
    with pytest.raises((TypeError, ValueError)):
        x.permute([Calls(list, 0), nested])


@pytest.mark.parametrize("memory", [torch.tensor(1.0), torch.zeros(0), torch.zeros(2, 3)])
def test_writing_a_complex_view_of_a_base_that_has_other_memory_now(memory):
    base = torch.zeros(3, 2, requires_grad=True) * 1
    view = torch.view_as_complex(base)
    base.data = memory
    with pytest.raises(RuntimeError, match=r"must have (one or more dimensions|a last dimension of size 2)"):
        view.mul_(2)


# ---- memory of others


def test_a_buffer_without_strides_is_as_long_as_its_memory():
    rows = torch.arange(3.0).expand(1000, 3)
    exported = _C.export_buffer(rows)
    assert numpy.asarray(exported).shape == (1000, 3)
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.sha256(exported)
    assert hashlib.sha256(_C.export_buffer(rows.contiguous())).digest_size == 32


def test_ctypes_says_nothing_of_strides():
    rows = ((ctypes.c_int16 * 2) * 3)((1, 2), (3, 4), (5, 6))
    shared, writable = _C.from_buffer(rows)
    assert writable and shared.tolist() == [[1, 2], [3, 4], [5, 6]]
    rows[0][0] = 7
    assert shared[0, 0] == 7


def test_an_array_that_reaches_beyond_memory_is_refused():
    wide = numpy.lib.stride_tricks.as_strided(numpy.zeros(2), (2**20, 2**20), (2**50, 2**50))
    with pytest.raises(ValueError, match="farther than memory"):
        torch.from_numpy(wide)


@pytest.mark.filterwarnings("error")
def test_a_loop_with_a_tensor_on_a_memoryview_is_collected():
    view = memoryview(bytearray(8))
    loop = [torch.frombuffer(view, dtype=torch.uint8), _C.from_buffer(view)[0]]
    loop.append(loop)
    freed = weakref.ref(loop[0])
    del view, loop
    gc.collect()
    assert freed() is None


def test_who_lends_memory_does_not_move_it():
    x = torch.zeros(1000)
    with memoryview(_C.export_buffer(x)) as lent, memoryview(_C.export_buffer(x)) as again:
        again.release()
        with pytest.raises(RuntimeError, match="not resizable"):
            x.resize_(100_000)
        assert lent[999] == 0
    x.resize_(100_000)
    held = numpy.asarray(x)
    memoryview(_C.export_buffer(x)).release()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(200_000)
    assert held[0] == 0


def test_a_file_that_moves_what_is_being_saved():
    x, refused = torch.zeros(100_000), []

    class File(io.BytesIO):
        def write(self, data):
            if len(data) == 400_000:
                with pytest.raises(RuntimeError, match="not resizable"):
                    x.untyped_storage().resize_(10**6)
                refused.append(data)
            return super().write(data)

    file = File()
    torch.save(x, file)
    assert refused and torch.load(io.BytesIO(file.getvalue())).count_nonzero() == 0
    refused.clear()
    x.untyped_storage().resize_(10**6)


def test_no_memory_for_elements():
    memory = ctypes.create_string_buffer(bytes(48))
    shape = (ctypes.c_int64 * 1)(3)
    struct.pack_into("<QiiiBBHQQQ", memory, 0, 0, 1, 0, 1, 2, 32, 1, ctypes.addressof(shape), 0, 0)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    with pytest.raises(RuntimeError, match="no memory"):
        _C.from_dlpack(make(ctypes.addressof(memory), b"dltensor", None))


# ---- sizes and gradients that do not fit


def test_a_tensor_without_data_among_numbers():
    for data in ([[1.0, 2.0], torch.empty(2, device="meta")], torch.empty(2, device="meta")):
        with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
            _C.from_data(data, None, None)
    empty = torch.empty(2, 3, device="meta")
    assert _C.ops.masked_select_backward(empty, empty.bool(), (2, 3)).is_meta


def test_a_tensor_that_becomes_itself():
    x = torch.zeros(1, 2, 1, 2, 1, 2)
    x.data = x
    _C.become_view(x, x)
    assert x.shape == (1, 2, 1, 2, 1, 2) and x.is_contiguous()


def test_nothing_has_no_dtype():
    with pytest.raises(TypeError, match="expected Tensors or Numbers"):
        _C.result_type()


RULES = [  # kinds: 0 gradient, 1 all gradients, 2 argument, 3 shape, 4 output, 5 what is needed, 6 turned
    ("exp2", 0, [(0, 1)], 0), ("exp2", 0, [(2, 1)], 0), ("exp2", 0, [(3, 1)], 0), ("exp2", 0, [(4, 1)], 0),
    ("exp2", 0, [(4, -1)], 0), ("exp2", 0, [(6, 1)], 0), ("exp2", 0, [(7, 0)], 0),
    ("exp2", 0, [(0, 0), (3, 0)], 3), ("exp2", 1, [(0, 0)], 0), ("unbind", 0, [(0, 0)], 0),
    ("exp2", 0, [None], 0), ("exp2", 0, [(0,)], 0),
]  # fmt: skip


@pytest.mark.parametrize("name, index, params, form", RULES)
def test_a_rule_names_what_there_is(name, index, params, form):
    with pytest.raises((ValueError, TypeError)):
        getattr(_C.ops, name).set_rule(index, len, params, False, form)


def test_the_rules_of_a_graph_stay():
    (torch.ones(2, requires_grad=True) * 2).exp()
    for change in (lambda: _C.ops.exp.set_rule(0, len, [(2, 0)], False, 0),
                   lambda: _C.ops.exp.set_shown(1, 1, 1, 0)):  # fmt: skip
        with pytest.raises(RuntimeError, match="recorded with other rules"):
            change()


@pytest.mark.parametrize("call", [
    lambda: torch.empty_strided((SMALLEST,), (1,)),
    lambda: torch.empty_strided((SMALLEST, 3), (1, 1)),
    lambda: _C.ops.pick(torch.zeros(3, 4), (4, 1), (SMALLEST,), (5,), 1),
    lambda: _C.ops.conv_input_gradient(IMAGES, torch.zeros(2, 2, 3, 3), (3, 4, 4, SMALLEST), 1, 1, 1, 2),
])  # fmt: skip
def test_the_smallest_size_is_refused(call):
    with pytest.raises(RuntimeError, match="negative dimension"):
        call()


@pytest.mark.parametrize("call", [
    # 9 * 1269506615 * 1614515597 is a little more than 2**64
    lambda: unfold(torch.zeros(1, CHANNELS, 1, 1), KERNEL, padding=[k // 2 for k in KERNEL]),
    lambda: unfold(torch.zeros(2, 2, 3, 4), 2, padding=2**31 - 1),
])  # fmt: skip
def test_blocks_that_cannot_be_counted_are_refused(call):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        call()


TAKEN = [lambda x: x[1:3], lambda x: x[2], lambda x: x.diagonal(), lambda x: x[:, ::2],
         lambda x: x.sum(0), lambda x: x.sum(1, keepdim=True), lambda x: x.amax((0, 1), True)]  # fmt: skip


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("sizes", [(0,), (7, 7), (5,), (2, 0), (3, 1, 3), (0, 1), (4, 0), (1, 0)])
def test_a_node_that_is_called_with_another_gradient(take, sizes):
    node = take(torch.zeros(4, 4, requires_grad=True)).grad_fn
    with pytest.raises(RuntimeError, match=r"size|shape|reduction"):
        node(torch.ones(sizes))


@pytest.mark.parametrize("name", ["cat", "stack", "block_diag"])
def test_a_tensor_is_no_list_of_tensors(name):
    x = torch.zeros(2)
    x.attribute = 1  # where a list has its length
    operation = getattr(_C.ops, name)
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        operation(*[x, 0][: len(operation.args)])


@pytest.mark.parametrize("value", [None, 0.5, "a"])
def test_a_layer_of_two_devices_is_given_what_is_no_tensor(value):
    with pytest.raises((TypeError, RuntimeError)):
        _C.ops.linear(torch.ones(3, device="meta"), value, torch.ones(3, 3))


# ---- code that runs in between


@pytest.fixture
def collecting():
    """A collection at nearly every new container, and some code with each."""
    threshold, codes, free = gc.get_threshold(), [], []
    free += [torch.zeros(1) for _ in range(5000)]  # no freed tensors wait to be used again
    gc.callbacks.append(lambda *_: [code() for code in codes])
    gc.set_threshold(1, 10**6, 10**6)
    yield codes.append
    gc.set_threshold(*threshold)
    gc.callbacks.pop()


@pytest.mark.parametrize("use", [
    lambda x: x @ x.mT, lambda x: x.double() @ x.mT.double(), lambda x: x.topk(2)[0],
    lambda x: x.logsumexp(0), lambda x: x.sort(0)[1], lambda x: x.unfold(0, 2, 1).exp(),
    lambda x: x.tolist(), lambda x: x.stride(), lambda x: x.shape,
])  # fmt: skip
def test_a_collection_may_take_memory_away(collecting, use):
    x = torch.zeros(20, 50)
    expected = use(x)
    small, kept = torch.full((3,), 5.0), []
    collecting(lambda: setattr(x, "data", small))
    for _ in range(50):
        x = torch.zeros(20, 50)
        kept.append((x, use(x)))
    for _, result in kept:
        # Garbage is collected before the operation looks at its argument, or after.
        if len(result) == len(expected):
            assert (result == expected) is True or torch.equal(result, expected)


@pytest.mark.parametrize("use", [
    lambda x: x @ x, lambda x: x.add(x), lambda x: torch.cat([x, x]), lambda x: x.exp().sum().backward(),
])  # fmt: skip
@pytest.mark.parametrize("stacks", [False, True])
def test_a_collection_may_stop_the_profiler(collecting, use, stacks):
    x = torch.ones(3, 3, requires_grad=True)
    stopped = []

    def stop():
        if _C._profiler_enabled():
            stopped.append(_C.profiler_stop())

    collecting(stop)
    for _ in range(20):
        _C.profiler_start(True, stacks, False)
        use(x)
        stop()
    assert len(stopped) == 20


def test_numbers_inside_tuples_are_asked_first():
    x = torch.zeros(1, 2, 13)
    spec = ("reflect", (Calls(lambda: x.resize_(0), 2),))
    assert _C.ops.reflection_pad1d(x, (9,), spec, True).tolist() == [0] * 9


@pytest.fixture
def watched():
    def watch(code):
        _C.watch_writes(lambda t: code())

    yield watch
    _C.watch_writes(None)


def halves():
    return torch.ones(60, 70, dtype=torch.complex64)


@pytest.mark.parametrize(("make", "use"), [
    (lambda: (torch.zeros(60, 70), halves()), lambda x, z: x.copy_(z)),
    (lambda: (halves(),), lambda z: z.to(torch.float32)),
    (lambda: (halves(),), lambda z: z.sum(1, dtype=torch.float32)),
    (lambda: (torch.zeros(60, 70), torch.tensor(1j)), lambda x, z: x.fill_(z)),
    (lambda: (torch.ones(60, 1),), lambda x: x.var(1)),
    (lambda: (torch.ones(60, 1),), lambda x: torch.std_mean(x, 1)),
])  # fmt: skip
@pytest.mark.parametrize("which", [0, -1])
@pytest.mark.parametrize("change", [
    lambda t: t.resize_(1), lambda t: t.resize_(400_000), lambda t: t.set_(torch.ones(2, dtype=t.dtype)),
])  # fmt: skip
def test_who_shows_a_warning_may_resize_what_it_is_about(make, use, which, change, monkeypatch):
    tensors = make()
    monkeypatch.setattr(_warn, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda *_, **__: change(tensors[which]))
        # Filled is what has been resized, too: that reads no other elements.
        fills = len(tensors) == 2 and tensors[1].ndim == 0 and which == 0
        with contextlib.nullcontext() if fills else pytest.raises(RuntimeError, match="was resized while"):
            use(*tensors)


def test_who_watches_an_optimizer_may_take_its_tensors_away(watched):
    params, grads = [torch.zeros(2000)], [torch.ones(2000)]
    watched(lambda: (params.clear(), grads.clear(), gc.collect()))
    assert _C.sgd_steps(params, grads, None, 0.1, 0.0, 0.0, 0.0, False, False, False)
    params, grads = [torch.zeros(2000)], [torch.ones(2000)]
    small = grads[0]
    watched(lambda: small.resize_(1))
    assert not _C.sgd_steps(params, grads, None, 0.1, 0.0, 0.0, 0.0, False, False, False)


def test_who_watches_running_statistics_may_resize_them(watched):
    running, now = [torch.zeros(3000), torch.ones(3000)], [torch.zeros(3000), torch.ones(3000)]
    watched(lambda: now[0].resize_(1))
    with pytest.raises(RuntimeError, match="as many as the channels"):
        _C.update_running_statistics(*running, *now, 5.0, 0.1)


def test_who_watches_may_detach_what_is_written(watched):
    x = torch.ones(3, requires_grad=True)
    y, result = x * 2, x * 3
    watched(result.detach_)
    _C.become(y, result)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_a_backward_within_a_backward_within_a_backward():
    levels = 5 * sys.getrecursionlimit()

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, level):
            ctx.level = level
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.level < levels:
                with torch.enable_grad():
                    Nested.apply(torch.ones(1, requires_grad=True), ctx.level + 1).backward()
            return g, None

    x = torch.ones(1, requires_grad=True)
    Nested.apply(x, 0).backward()
    assert x.grad.tolist() == [1]


class Measures:
    """A number that is no index."""

    def __init__(self, code):
        self.code = code

    def __float__(self):
        self.code()
        return 1.0


def test_numbers_are_asked_before_tensors_are_looked_at():
    x, index, source = torch.zeros(4, 1000), torch.tensor([0, 1]), torch.ones(2, 1000)
    shrinks = Measures(lambda: setattr(source, "data", torch.zeros(1, 1000)))
    with pytest.raises(RuntimeError, match="Number of indices"):
        _C.ops.index_add(x, index, source, 0, shrinks)
    flattens = Measures(lambda: setattr(x, "data", torch.zeros(())))
    with pytest.raises(IndexError, match="Dimension out of range"):
        _C.ops.scatter_value(x, index.expand(1, 2), flattens, 1)


def test_sizes_of_an_empty_tensor_can_be_multiplied():
    for sizes in ((2**62, 2**62, 0), (0, 2**62, 2**62), (2**31, 2**40, 0)):
        for device in ("cpu", "meta"):
            with pytest.raises(RuntimeError, match="calculation overflowed"):
                torch.empty(sizes, device=device)
    assert torch.empty(2**62, 0).shape == (2**62, 0)


def test_pooling_without_data_counts_no_windows():
    long = torch.empty(1, 1, 2**50, device="meta")
    assert torch.nn.functional.max_pool1d(long, 2).shape == (1, 1, 2**49)
    assert torch.nn.functional.max_pool1d(long, 3, 1, return_indices=True)[1].shape == (1, 1, 2**50 - 2)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_draws_though_a_thread_was_drawing():
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            torch.randn(200_000)

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    ends = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            torch.manual_seed(0)
            torch.randn(100_000)
            os._exit(0)
        ends.append(os.waitpid(child, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    assert ends == [0] * 8


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_finds_no_work_half_done():
    """Nor a lock that was closed for it, as that of the plans of transforms."""
    x, stop = torch.zeros(2_000_000), threading.Event()
    torch.fft.fft(x[:4])  # imported: a module that a thread is at stays locked in the child, by Python

    def count():
        while not stop.is_set():
            x.add_(1)

    def transform():
        for length in itertools.cycle(range(50_000, 50_040)):
            torch.fft.fft(torch.ones(length))
            if stop.is_set():
                return

    threads = [threading.Thread(target=count), threading.Thread(target=transform)]
    for thread in threads:
        thread.start()
    ends = []
    for _ in range(12):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            whole = bool(x.min() == x.max())
            torch.fft.fft(torch.ones(50_000))
            os._exit(0 if whole else 1)
        ends.append(os.waitpid(child, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    assert ends == [0] * 12
    assert x.add_(1).min() == x.max()


@pytest.mark.parametrize("call", [
    lambda x: x.xpu(), lambda x: x.ipu(), lambda x: x.to("ipu"), lambda x: x.view(7), lambda x: x + "a",
    lambda x: torch.tensor([[1, 2], [3]]), lambda x: torch.cat([x, None]), lambda x: x[5], lambda x: x.sum(9),
    lambda x: torch.empty(2, -1), lambda x: x.backward(), lambda x: _C.from_dlpack(x), lambda x: x.set_(x, 9),
    lambda x: torch.add(x, x, out=3), lambda x: x.new_zeros("a"), lambda x: x.index_put_((9,), x), torch.save,
])  # fmt: skip
def test_a_call_that_fails_leaves_nothing_behind(call):
    x = torch.zeros(2, 3)

    def blocks():
        for _ in range(300):
            with contextlib.suppress(Exception):
                call(x)
        gc.collect()
        return sys.getallocatedblocks()

    for _ in range(3):  # in which Python's own caches grow, of blocks up to 120
        blocks()
    assert blocks() - blocks() > -150  # of each call less than half a block


def test_bytes_that_grow_in_depth_have_room():
    for _ in range(20):
        x = torch.ones(1, 1, 1, 1, 1, dtype=torch.uint8)
        spread = _C.ops.upsample_nearest3d(x, (64, 64, 64), ("nearest", None), True)
        assert spread.sum() == 1


@pytest.mark.parametrize("state, weight", [((5, 4), (1, 16, 4)), ((5, 1, 4), (16, 4)), ((1, 5, 4), (16, 4))])
def test_weights_and_states_of_sequences_are_matrices(state, weight):
    h, x, w = torch.zeros(5, 4), torch.zeros(3, 5, 16), torch.zeros(weight)
    with pytest.raises(RuntimeError, match="must be matrices"):
        _C.ops.rnn_sequence(x, h, torch.zeros(state), w, None, "lstm", None, False, True)


def test_a_function_shows_a_name_that_is_no_text():
    class Named:
        def __call__(self):
            pass

    for _ in range(5):
        named = Named()
        named.__name__ = named.__qualname__ = torch.ones(2)
        assert "tensor([1., 1.])" in repr(_C.Function(named))
