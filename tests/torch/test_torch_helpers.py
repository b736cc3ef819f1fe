"""What torch's own tests are written with (torch.testing._internal) runs with Rushlight in torch's place."""

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

SETUP = f"""
import sys
from rushlight._alias import TorchFinder
sys.meta_path.insert(0, TorchFinder())
import torch
torch.testing.__path__.append({os.path.join(os.path.dirname(torch.__file__), "testing")!r})
"""


def run(program, directory):
    """In a directory without Rushlight's sources, so that what is installed is found."""
    command = [sys.executable, "-c", SETUP + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=directory)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_they_can_be_imported(tmp_path):
    names = (
        "autocast_test_lists autograd_function_db common_cuda common_device_type common_dtype common_jit "
        "common_methods_invocations common_mkldnn common_modules common_nn common_optimizers common_pruning "
        "common_quantization common_subclass common_utils composite_compliance custom_op_db custom_tensor "
        "generated.annotated_fn_args hypothesis_utils inductor_utils jit_metaprogramming_utils jit_utils "
        "logging_tensor opinfo.definitions.nested opinfo.refs optests triton_utils two_tensor"
    )
    run(f"import importlib\nfor name in {names!r}.split(): "
        "importlib.import_module('torch.testing._internal.' + name)", tmp_path)  # fmt: skip


def test_functions_below_the_public_ones(tmp_path):
    said = run(
        """
        import torch.fft, torch.linalg, torch.special
        print(torch._C._linalg.linalg_norm is torch.linalg.norm, torch._C._fft.fft_fft is torch.fft.fft)
        print(torch._C._special.special_expit is torch.special.expit)
        print(torch._C._nn.gelu is torch.nn.functional.gelu)
        print(torch._C._VariableFunctions.__and__(torch.tensor(6), 3))
        from torch.autograd.function import _nested_map
        print(_nested_map(lambda x: isinstance(x, int), lambda x: x + 1)([1, {"a": (2, None)}]))
    """,
        tmp_path,
    )
    assert said.splitlines() == [
        *("True True", "True", "True", "tensor(2)"),
        "[2, {'a': (3, None)}]",
    ]
