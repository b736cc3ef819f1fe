"""Results, warnings and refusals of what training uses beside operations: expressions for both libraries."""

import importlib

import pytest
import torch
from outcomes import outcome

import rushlight

pytestmark = pytest.mark.torch

SETUP = """
import io, os, pickle, subprocess, zipfile
import torch
import torch.distributions as D
import torch.distributions.transforms as T
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.modules._functions
import torch.optim as O
import torch.optim._multi_tensor as M
import torch.utils.data._utils as U
import torch.serialization as S
from torch import tensor as t
from torch.distributions import constraints
from torch.nn.utils import parametrizations as P, parametrize, prune, rnn
from torch.optim import lr_scheduler as L
from torch.utils.data import default_collate
from torch.utils.data.backward_compatibility import worker_init_fn

class Halved(nn.Module):
    def forward(self, x):
        return x

    def right_inverse(self, x):
        return x.half()

def changed(record, data):
    # A checkpoint, one record of which is other than it was, or gone.
    whole, new = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.arange(4.0)}, whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(new, "w") as made:
        for name in old.namelist():
            if name.partition("/")[2] != record:
                made.writestr(name, old.read(name))
            elif data is not None:
                made.writestr(name, data)
    new.seek(0)
    return new

def records(version=None):
    buffer = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(buffer)
    writer.write_record("a", b"hello", 5)
    writer.write_record("b", b"hello", 3)
    if version is not None:
        writer.set_min_version(version)
    writer.write_end_of_file()
    buffer.seek(0)
    reader = torch._C.PyTorchFileReader(buffer)
    names = reader.get_all_records()
    return names, reader.get_record("a"), reader.get_record("b"), reader.has_record("c"), (
        reader.get_record_offset("a") % 64, reader.get_record_size("a"), reader.get_record_header_offset("a"))

def nbytes(tensor):
    return tensor.untyped_storage().nbytes()

x4 = torch.arange(12.0).view(1, 3, 2, 2).requires_grad_()

def ended(command):
    # What is said of a worker that ran this.
    handling = U.signal_handling
    process = subprocess.Popen(["sh", "-c", command])
    handling._set_worker_pids(7, (process.pid,))
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        handling._error_if_any_worker_fails()
    except RuntimeError as error:
        return str(error).replace(str(process.pid), "PID")
    finally:
        handling._remove_worker_pids(7)
        process.wait()

def resumed(make):
    def fresh():
        optimizer = O.SGD([nn.Parameter(torch.ones(1))], lr=0.5, momentum=0.9)
        return optimizer, make(optimizer)
    optimizer, scheduler = fresh()
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    state = scheduler.state_dict()
    optimizer, again = fresh()
    again.load_state_dict(dict(state))
    optimizer.step()
    again.step()
    return again.get_last_lr(), {k: v for k, v in again.state_dict().items() if not callable(v)}

def cast(function, *args):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return str(function(*args).dtype)

def uncast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch._C._DisableAutocast():
        return (x @ x).dtype, torch.is_autocast_enabled("cpu")
"""
EXPRESSIONS = """
F.conv1d(torch.ones(1, 3, 5), torch.ones(4, 3, 0))
F.conv2d(torch.ones(1, 3, 5, 5), torch.ones(4, 3, 0, 2))
F.conv3d(torch.ones(1, 3, 5, 5, 5), torch.ones(4, 3, 0, 1, 2))
F.conv_transpose2d(torch.ones(1, 3, 5, 5), torch.ones(3, 4, 0, 0))
D.kl_divergence(D.Normal(0.5, 2.0), D.Beta(t([0.5, 2.0]), t([1.5, 3.0])))
D.kl_divergence(D.Gamma(t([0.5, 2.0]), 1.0), D.ContinuousBernoulli(t([0.2, 0.5, 0.7])))
D.Normal(0.0, 1.0).sample_n(2).shape
D.Wishart(t([3.0]), torch.eye(2)).sample((0,)).shape
constraints.positive_definite.check(torch.zeros(0, 2, 2))
hash(T.ExpTransform())
hash(T.SoftmaxTransform().inv)
T.StickBreakingTransform().forward_shape((2, 3))
T.CorrCholeskyTransform().inverse_shape((3, 3))
type(pickle.loads(pickle.dumps(T.StackTransform([T.ExpTransform()])))).__module__.partition(".")[2]
nn.MultiheadAttention(4, 2, kdim=3, vdim=5)(torch.ones(3, 2, 4), torch.ones(4, 2, 4), torch.ones(4, 2, 5))
nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])(torch.ones(6, 4), t(7))
parametrize.register_parametrization(nn.Linear(3, 3), "weight", Halved())
P.weight_norm(nn.Linear(3, 3), dim=5)
P.weight_norm(nn.Linear(3, 3), dim=-2).parametrizations.weight.original0.shape
prune.custom_from_mask(nn.Linear(2, 2), "weight", torch.eye(3))
rnn.pad_sequence("ab")
rnn.pad_sequence([t([1]), 2])
torch._pack_padded_sequence(torch.ones(3, 2), t([3, 1]), False)
torch._pad_packed_sequence(torch.arange(4.0), t([2, 1, 1]), True, -1.0, 4)
resumed(lambda o: L.CyclicLR(o, 0.1, 1.0, 3))
resumed(lambda o: L.OneCycleLR(o, 1.0, 10))
S.load(changed("version", b"5"))
S.load(changed("byteorder", b"middle"))
S.StorageType("BFloat16Storage").dtype, str(S.StorageType("LongStorage"))
S.StorageType("Storage")
S.validate_cuda_device("cpu")
S.validate_hpu_device("hpu")
S._is_zipfile(changed("", None)), S._is_zipfile(io.BytesIO(b"none"))
S._is_path("a"), S._is_path(b"a"), S._maybe_decode_ascii(b"a"), S._is_compressed_file(io.BytesIO())
S._should_read_directly(io.BytesIO())
S.MAGIC_NUMBER, S.PROTOCOL_VERSION, S.INT_SIZE, S.STORAGE_KEY_SEPARATOR, S._get_storage_alignment()
records()
records(7)
torch._C.PyTorchFileReader("nowhere")
torch._C.PyTorchFileReader(changed("", None)).get_record("nothing")
nbytes(torch._C.PyTorchFileReader(changed("", None)).get_storage_from_record("data/0", 4, torch.float32))
D.GeneralizedPareto(0.0, t([1.0, 2.0]), t([0.5, 0.0])).log_cdf(t([1.0, 2.0]))
D.GeneralizedPareto(0.0, t([1.0, 2.0]), t([0.5, 0.0])).log_survival_function(t([1.0, 2.0]))
U.worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=4)
setattr(U.worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=4), "id", 5)
default_collate([1, "a"])
torch.tensor([[1], "a"])
torch.tensor(["a", 1])
U.signal_handling._set_worker_pids(1, [2])
U.signal_handling._remove_worker_pids(99)
ended("exit 0"), ended("exit 3"), ended("kill -9 $$")
worker_init_fn(0)
torch.nn.modules._functions.BackwardHookFunction.apply(torch.ones(1, requires_grad=True), torch.ones(1))
torch.nn.modules._functions.CrossMapLRN2d.apply(x4, 3, 0.1, 0.75, 1)
M.AdamW(nn.Linear(1, 1).parameters()).defaults["foreach"]
torch.amp.custom_bwd(len, device_type=5)
torch.get_autocast_cpu_dtype()
torch.set_autocast_cpu_enabled(False)
torch.is_autocast_cpu_enabled()
torch.get_autocast_gpu_dtype()
cast(torch.linalg.pinv, torch.eye(2))
cast(torch.pinverse, torch.eye(2))
uncast(torch.eye(2))
"""


def evaluated(library, expression, outcome=outcome):
    names = {}
    code = SETUP.replace("import torch\n", "").replace("import torch.", f"import {library.__name__}.")
    names["torch"] = library
    exec(code.replace("from torch", f"from {library.__name__}"), names)
    importlib.import_module(f"{library.__name__}.amp")
    library.manual_seed(0)
    return [each.replace(library.__name__, "torch") for each in outcome(lambda: eval(expression, names))]


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_as_torch(expression):
    assert evaluated(rushlight, expression) == evaluated(torch, expression)


@pytest.mark.parametrize("version", [None, b"99999", b"abc", b"0"])
def test_refused_versions(version):
    messages = []
    for library in (rushlight, torch):
        with pytest.raises(RuntimeError) as refused:
            evaluated(library, f"S.load(changed('version', {version}))", lambda run: run())
        messages.append(str(refused.value).splitlines()[0])
    assert messages[0].partition(" (")[0] in messages[1]  # torch names the line of its source before
