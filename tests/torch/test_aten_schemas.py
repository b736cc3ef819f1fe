"""Every signature that is known here, compared with torch's."""

import torch

import rushlight
from rushlight._schema import _lines, is_said


def parts(schema):
    def alias(each):
        info = each.alias_info
        return info and (info.is_write, sorted(info.before_set), sorted(info.after_set))

    def one(each):
        default = repr(each.default_value), each.has_default_value()
        types = str(each.type), str(each.real_type), each.type.kind(), each.N
        return each.name, types, default, each.kwarg_only, each.is_out, alias(each)

    return (
        str(schema),
        schema.name,
        schema.overload_name,
        schema.is_mutable,
        [one(each) for each in schema.arguments],
        [(each.name, str(each.type), alias(each)) for each in schema.returns],
    )


def test_all_the_same():
    different = []
    for line in _lines():
        name, _, overload = line.partition(".")
        ours, theirs = (
            parts(getattr(getattr(lib.ops.aten, name), overload or "default")._schema)
            for lib in (rushlight, torch)
        )
        if ours != theirs:
            different.append((ours, theirs))
    assert len(_lines()) > 2000 and different == []


def said(overload):
    try:
        decomposes = overload._can_decompose()
    except RuntimeError as error:
        decomposes = str(error)
    return [str(tag) for tag in overload.tags], overload.is_view, decomposes


def test_what_is_said_of_the_operations():
    different = []
    for line in _lines():
        name, _, overload = line.partition(".")
        ours, theirs = (
            said(getattr(getattr(lib.ops.aten, name), overload or "default")) for lib in (rushlight, torch)
        )
        if ours != theirs:
            different.append((line, ours, theirs))
    assert different == []


def test_what_has_no_kernel_for_sparse_tensors():
    has_kernel = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    names = set(torch._C._dispatch_get_all_op_names())
    different = [
        line
        for line in (f"aten::{line}" for line in _lines())
        if line in names and is_said("not_sparse", line) == has_kernel(line, "SparseCPU")
    ]
    assert different == []


def test_decompose():
    for lib in (rushlight, torch):
        x = lib.ones(2, 2)
        assert lib.ops.aten.mm.default.decompose(x, x) is NotImplemented
        assert lib.ops.aten.linear.default.decompose(x, x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
