"""What torch's test files for overrides, sequences, iterations and names below the public ones ask."""

import io
from importlib import import_module

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


class Like:
    """Stands for a tensor and tells what it was asked."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        options = {name: value for name, value in (kwargs or {}).items() if name != "tensor"}
        return function.__name__, [kind.__name__ for kind in types], len(args), options


def seen_by_mode(torch, program):
    """The functions that a mode is asked about, with the names of their keyword arguments."""
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append((torch.overrides.resolve_name(function), sorted(kwargs or {})))
            return function(*args, **(kwargs or {}))

    with Mode():
        program()
    return seen


@case("modes are told what is recorded, and decide it")
def _(torch):
    told = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __init__(self, name, deaf=False):
            self.name, self.deaf = name, deaf

        def __torch_function__(self, function, types, args=(), kwargs=None):
            told.append((self.name, function.__name__, args))
            return None if self.deaf else function(*args, **(kwargs or {}))

    @torch.no_grad()
    def steps():
        yield torch.is_grad_enabled()

    def block(mode):
        with mode:
            return torch.is_grad_enabled()

    with Mode("outer"), Mode("inner"):
        seen = [block(torch.no_grad()), block(torch.enable_grad()), block(torch.set_grad_enabled(False))]
        seen += [list(steps()), torch.no_grad()(torch.is_grad_enabled)(), torch.is_grad_enabled()]
        torch._C._set_grad_enabled(True)
        torch.set_grad_enabled(False)(abs)
    with Mode("deaf", True):
        seen.append(block(torch.no_grad()))
    return told, seen, torch.is_grad_enabled()


@case("the functions of nn.init that ask, and those that do not")
def _(torch):
    init = torch.nn.init
    asked = [init.uniform_(Like()), init.uniform_(Like(), 1, b=3), init.normal_(tensor=Like(), std=2)]
    asked += [init.constant_(Like(), 3), init.kaiming_uniform_(Like(), mode="fan_out")]
    weight = torch.ones(2, 2)
    fills = [init.uniform_, init.normal_, init.kaiming_uniform_, init.kaiming_normal_, init.ones_]
    fills += [init.xavier_uniform_, init.zeros_, lambda w: init.constant_(w, 2)]
    return asked, [seen_by_mode(torch, lambda fill=fill: fill(weight)) for fill in fills]


@case("a mode sees what a layer does to make its parameters")
def _(torch):
    return seen_by_mode(torch, lambda: torch.nn.Linear(2, 2))


@case("arithmetic of symbols asks")
def _(torch):
    asked = [
        torch.sym_float(Like()),
        torch.sym_max(Like(), 2),
        torch.sym_min(2, Like()),
        torch.sym_not(Like()),
    ]
    asked += [torch.sym_ite(Like(), 1, 2), torch.sym_ite(True, Like(), 2), torch.sym_sum([Like(), 1])]
    asked += [torch.sym_sum(Like()), torch.sym_sqrt(Like())[1:]]
    plain = [torch.sym_sum([1, 2.5]), torch.sym_max(1, 2.5), torch.sym_ite(True, 1, 2), torch.sym_not(0)]
    return asked, plain, err(torch.sym_ite, 3, 1, 2), err(torch.sym_ite, True, 1, 2.0)


@case("backward and grad ask one that is no tensor")
def _(torch):
    grad, backward = torch.autograd.grad, torch.autograd.backward
    x = torch.ones(2, requires_grad=True)
    return grad(Like(), x), grad(x.sum(), Like()), backward(Like()), backward([x.sum(), Like()])


@case("which functions the overrides for testing hold")
def _(torch):
    held, init = torch.overrides.get_testing_overrides(), torch.nn.init
    asking = [init.uniform_, init.constant_, torch.sym_float, torch.sym_ite, torch.linalg.vander, torch.add]
    return [function in held for function in (*asking, init.zeros_, torch.vander, torch.is_tensor)]


class Counted:
    """Has a length, and no elements."""

    def __init__(self, length, error=TypeError):
        self.length, self.error = length, error

    def __len__(self):
        if self.length is None:
            raise self.error("length")
        return self.length

    def __getitem__(self, index):
        raise self.error("element")


class Halting(Counted):
    def __getitem__(self, index):
        return [1.0][index]


class Endless:
    def __getitem__(self, index):
        return 1


@case("sequences that cannot be read")
def _(torch):
    tensor, said = torch.tensor, []
    for error in (TypeError, ValueError, IndexError):
        data = Counted(2, error)
        said += [err(tensor, given) for given in (data, [data], [1.0, data], [[1, 2], data])]
        said += [err(tensor, Counted(None, error)), tensor(Counted(0, error))]
    others = [err(tensor, Halting(2)), tensor(Halting(1)), err(tensor, Endless()), err(tensor, {1: 2})]
    typed = [err(torch.Tensor, Counted(2)), err(torch.ones(1).new_tensor, Counted(1))]
    return said, others, typed, err(torch.as_tensor, Counted(2))


@case("lobpcg shows its steps")
def _(torch):
    lobpcg = import_module(f"{torch.__name__}._lobpcg").lobpcg
    torch.manual_seed(0)
    A = torch.randn(9, 9).double()
    A, found = A @ A.T, []
    for method, matrix in (("basic", A), ("ortho", A.to_dense()), (None, torch.stack([A, A]))):
        steps = []

        def tracker(worker, steps=steps):
            sizes = [tuple(x.shape) for x in (worker.X, worker.E, worker.R, worker.tvars["rerr"], worker.A)]
            steps.append((worker.iparams["k"], worker.bparams["largest"], worker.fparams["tol"], sizes))
            assert worker.B is None and worker.ivars["istep"] + worker.ivars["iterations_left"] == 500

        values, _ = lobpcg(matrix, k=2, method=method, tracker=tracker, niter=500, tol=1e-8)
        found.append((values.round(decimals=4), steps[0]))
        if method:
            assert [step[0] for step in steps] == [2] * len(steps)
    return found


@case("lobpcg of sparse matrices")
def _(torch):
    A = torch.diag(torch.arange(1.0, 13)).to_sparse()
    torch.manual_seed(0)
    values = [torch.lobpcg(A, k=2, niter=500)[0], torch.lobpcg(A, k=2, largest=False, niter=500)[0]]
    B = torch.eye(12).mul(2).to_sparse()
    return [value.round(decimals=2) for value in (*values, torch.lobpcg(A, k=2, B=B, niter=500)[0])]


@case("products for iterations")
def _(torch):
    tools = import_module(f"{torch.__name__}._linalg_utils")
    low = import_module(f"{torch.__name__}._lowrank")
    X, M = torch.arange(6.0).view(3, 2), torch.eye(3) + 1
    kinds = [
        tools.get_floating_dtype(X.to(kind))
        for kind in (torch.int64, torch.bfloat16, torch.cfloat, torch.half)
    ]
    forms = [tools.matmul(None, X), tools.matmul(M.to_sparse(), X), tools.bform(X * 1j, None, X * (1 + 0j))]
    torch.manual_seed(0)
    basis = low.get_approximate_basis(torch.arange(20.0).view(5, 4), 2)
    return [
        *(kinds, forms, tools.qform(M, X), tools.is_sparse(X), err(tools.is_sparse, 3), tools.basis(X).shape),
        *(tools.symeig(M)[0].round(decimals=3), tools.symeig(M, True)[0].round(decimals=3)),
        (basis.T @ basis).round(decimals=3).abs(),
    ]


@case("the modules that are being computed, forward and backward")
def _(torch):
    tracking, nn, seen = import_module(f"{torch.__name__}.utils.module_tracker"), torch.nn, []

    class Part(nn.Module):
        def forward(self, x):
            x = (x["a"] if isinstance(x, dict) else x).sin()
            seen.append(("forward", sorted(tracker.parents), tracker.is_bw))
            if x.requires_grad:
                x.register_hook(lambda g: seen.append(("backward", sorted(tracker.parents), tracker.is_bw)))
            return {"a": x.cos()}

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.list = Part(), nn.ModuleList([Part()])

        def forward(self, x):
            return self.list[0](self.first(x))

    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("failed")

    whole, tracker, x = Whole(), tracking.ModuleTracker(), torch.ones(2, requires_grad=True)
    with tracker:
        whole(x * 1)["a"].sum().backward()
        seen.append(tracker.parents)
    with tracker, torch.no_grad():
        whole(x)
        whole.first(x)
        seen.append(err(Failing(), x))
    return seen, sorted(tracker.parents)


@case("what the counter of operations is made of")
def _(torch):
    tools = import_module(f"{torch.__name__}.utils.flop_counter")
    numbers = (0, 999, 1000, 12345, 10**6, 10**9, 10**12, 10**13, 10**16)
    texts = [tools.convert_num_with_suffix(n, tools.get_suffix_str(n)) for n in numbers]
    parts = [tools.convert_to_percent_str(*pair) for pair in ((1, 3), (0, 0), (5, 5), (3, 0))]
    shown = tools.shape_wrapper(lambda *args, out_shape=None, **others: (args, out_shape, others))
    given = shown(torch.ones(2), [torch.ones(3), 1], out_val=torch.ones(4), other={"a": torch.ones(5)})
    sizes = (2, 4, 4, 5), (2, 2, 6, 5), (2, 2, 6, 7)
    odd = (
        err(tools.sdpa_flop_count, *sizes[:2], (2, 1, 6, 7)),
        err(tools.sdpa_flop_count, (2, 4, 4, 4), *sizes[1:]),
    )
    return texts, parts, given, tools.get_shape("a"), tools.sdpa_flop_count(*sizes), odd


@case("names below the public ones that tests call")
def _(torch):
    C, storage, rates = torch._C, torch.storage, torch.optim.lr_scheduler
    convert = import_module(f"{torch.__name__}.nn.utils.convert_parameters")
    schedule = rates.StepLR(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 1.0), 1)
    with rates._enable_get_lr_call(schedule):
        rate = schedule.get_lr()
    modes = torch.autograd.grad_mode
    guard = modes._enter_inference_mode(True)
    inside = torch.is_inference_mode_enabled()
    modes._exit_inference_mode(guard)
    with C._InferenceMode(True):
        made = torch.ones(1)
    C._warn()
    C._warn_deprecation()
    old = {dtype: name for dtype, name in storage._dtype_to_storage_type_map().items() if "Q" not in name}
    allowed = import_module(f"{torch.__name__}._weights_only_unpickler")._get_allowed_globals()
    return [
        *(
            rate,
            inside,
            torch.is_inference_mode_enabled(),
            made.is_inference(),
            old,
            torch._C._functorch is not None,
        ),
        *(convert._check_param_device(torch.ones(1), -1), err(convert._check_param_device, torch.ones(1), 0)),
        *(
            C.Size is torch.Size,
            C._infer_size(torch.Size([2, 1]), torch.Size([3])),
            isinstance(C._show_config(), str),
        ),
        *(err(C._infer_size, torch.Size([2]), torch.Size([3])), isinstance(C._parallel_info(), str)),
        *(C.OutOfMemoryError is torch.OutOfMemoryError, torch.complex32 in storage._new_dtypes()),
        *(storage._get_dtype_from_pickle_storage_type("HalfStorage"), torch.random.thread_safe_generator()),
        err(storage._get_dtype_from_pickle_storage_type, "OddStorage"),
        *(allowed["torch.Size"] is torch.Size, "torch._utils._rebuild_tensor_v2" in allowed),
        *(torch._utils._import_dotted_name("math.pi"), err(torch._utils._import_dotted_name, "math.nothing")),
        *(
            err(torch.Tensor._make_subclass, torch.Tensor, 3),
            isinstance(import_module(f"{torch.__name__}.version").git_version, str),
        ),
    ]


@case("weak references that compare as their objects do")
def _(torch):
    weak = import_module(f"{torch.__name__}.utils.weak")

    class Key:
        def __hash__(self):
            return 3

        def __eq__(self, other):
            return True

    first, second = Key(), Key()
    kept = weak.WeakIdKeyDictionary(ref_type=weak._WeakHashRef)
    kept[first], kept[second] = 1, 2
    reference = weak._WeakHashRef(first)
    same = reference == weak._WeakHashRef(second), hash(reference)
    del first
    return len(kept), same, reference == weak._WeakHashRef(second), reference == reference


@case("archives tell whether they hold a program")
def _(torch):
    file = io.BytesIO()
    torch.save({"a": 1}, file)
    file.seek(0)
    return torch.serialization._is_torchscript_zip(torch._C.PyTorchFileReader(file))


@case("the empty dimension that argmax names, counted from the front")
def _(torch):
    sizes = [((0,), -1), ((0, 3), -2), ((3, 0), -1), ((2, 0, 3), 1), ((2, 0, 3), -2)]
    functions = torch.argmax, torch.argmin, torch.amax
    return [err(function, torch.ones(size), dim) for function in functions for size, dim in sizes]


@case("kl_div warns of its mean where it was asked for by name")
def _(torch):
    x, kl_div = torch.ones(2) / 2, torch.nn.functional.kl_div
    return [
        kl_div(x, x, reduce=True),
        kl_div(x, x, size_average=True),
        kl_div(x, x),
        torch.nn.KLDivLoss()(x, x),
    ]


@case("indices and values that override, and are no tensors")
def _(torch):
    seen = []

    class Own:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append((function.__name__, [kind.__name__ for kind in types]))
            return "asked"

    x, own = torch.ones(3, 3), Own()
    read = [err(lambda index=index: x[index]) for index in (own, (0, own), [own], slice(own, None))]
    written = [((own), 1), ((own, 0), torch.ones(1)), (0, own), ([own], own)]
    written = [err(x.__setitem__, index, value) for index, value in written]
    with torch._C.DisableTorchFunctionSubclass():
        off = err(lambda: x[own])
    return read, written, off, seen


@case("modes see devices being made and the arguments of Module.to")
def _(torch):
    def made():
        torch.device("cpu"), torch.device("cpu", 0), torch._C._nn._parse_to("cpu")
        torch.nn.Identity().to("cpu")

    class Other(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.device and isinstance(args[0], int):
                args = ("meta", args[0])
            return function(*args, **(kwargs or {}))

    with Other():
        device = torch.device(0), torch.device("cpu")
    names = [name for name, _ in seen_by_mode(torch, made)]
    return device, len(names), names.count("torch.device"), err(torch.device, "nothing")


@case("broadcast_all takes what overrides")
def _(torch):
    broadcast = torch.distributions.utils.broadcast_all
    own = [broadcast(Like(), Like()), broadcast(Like(), 1), broadcast(torch.ones(2), Like(), 2)]
    return (
        [(name, count) for name, _, count, _ in own],
        broadcast(1, torch.ones(2)),
        err(broadcast, 1j),
        err(broadcast, "a", 1),
        broadcast(1, 2.5),
    )


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
