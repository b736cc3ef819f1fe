"""Names that test suites and libraries reach for: FileCheck, tracebacks, devices as decorators."""

import pytest

import rushlight as torch
from rushlight._utils import classproperty, render_call, try_import
from rushlight.autograd.graph import _engine_run_backward, _get_grad_fn_or_grad_acc
from rushlight.testing import FileCheck
from rushlight.utils._device import DeviceContext, set_device
from rushlight.utils._traceback import (
    CapturedTraceback,
    format_traceback_short,
    report_compile_source_on_error,
)
from rushlight.utils.checkpoint import _infer_device_type


def test_a_text_is_checked():
    text = "one two\nthree\none\n"
    FileCheck().check("one").check_same("two").check_next("three").check_not("two").run(text)
    FileCheck().check_count("one", 2, exactly=True).run(text)
    with pytest.raises(RuntimeError, match='Expected to find "four" but did not find it'):
        FileCheck().check("four").run(text)
    with pytest.raises(RuntimeError, match='Expected to not find "three" but found it'):
        FileCheck().check("two").check_not("three").run(text)


def test_a_device_is_a_decorator():
    @set_device("meta")
    def made():
        yield torch.ones(1).device.type
        yield torch.ones(1).device.type

    kinds = []
    for kind in made():
        kinds += [kind, torch.ones(1).device.type]
    assert kinds == ["meta", "cpu"] * 2
    with DeviceContext("meta"):
        assert torch.ones(1).is_meta
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        set_device("meta")(int)


def test_tracebacks():
    def here():
        return CapturedTraceback.extract()

    captured = here()
    assert captured.summary()[-1].name == "here" and "here" in captured.format()[-1]
    source = "def f():\n    raise ValueError('made')\n"
    made = {"__compile_source__": source}
    exec(compile(source, "<made>", "exec"), made)
    try:
        with report_compile_source_on_error():
            made["f"]()
    except ValueError as error:
        assert format_traceback_short(error.__traceback__).endswith("in f")


def test_small_names():
    x = torch.ones((), requires_grad=True)
    y = x * 2
    assert _get_grad_fn_or_grad_acc(y) is y.grad_fn and "AccumulateGrad" in _get_grad_fn_or_grad_acc(x).name()
    (g,) = _engine_run_backward((y,), (torch.ones(()),), False, False, (x,), accumulate_grad=False)
    assert g == 2 and _infer_device_type({"a": [x]}, 3) == "cpu"
    assert try_import("no_such_module") is None and try_import("math").pi > 3
    assert render_call(torch.sum, [torch.ones(2)], {"dim": 0}) == "torch.sum(tensor([...], size=(2,)), dim=0)"

    class Named:
        name = classproperty(lambda cls: cls.__name__)

    assert Named.name == Named().name == "Named"


def test_the_environment_is_told():
    from rushlight.utils.collect_env import get_env_info, get_pretty_env_info

    assert torch.__version__ in get_pretty_env_info() and get_env_info().is_cuda_available in (
        "True",
        "False",
    )
    assert get_pretty_env_info().count("\n") > 17


def test_triangles_are_on_the_default_device_and_normal_numbers_are_not():
    with torch.device("meta"):
        assert torch.tril_indices(2, 2).is_meta and not torch.normal(0.0, 1.0, (2,)).is_meta
