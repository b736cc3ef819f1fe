"""The signatures of operations, as programs that handle any operation read them."""

import pytest

import rushlight as torch

aten = torch.ops.aten


def test_a_signature_in_all_its_parts():
    schema = aten.add.out._schema
    assert (
        str(schema)
        == "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    )
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "out", True)
    assert [each.name for each in schema.arguments] == ["self", "other", "alpha", "out"]
    alpha, out = schema.arguments[2:]
    assert (str(alpha.type), alpha.default_value, alpha.kwarg_only, alpha.alias_info) == (
        "number",
        1,
        True,
        None,
    )
    assert out.is_out and out.alias_info.is_write and out.alias_info.before_set == {"a"}
    assert not out.has_default_value() and len(schema.returns) == 1


@pytest.mark.parametrize(
    ("overload", "types"),
    [
        (aten.sum.dim_IntList, ["Tensor", "Optional[List[int]]", "bool", "Optional[int]"]),
        (aten.cat.default, ["List[Tensor]", "int"]),
        (aten.split.Tensor, ["Tensor", "int", "int"]),
        (aten.conv2d.default, ["Tensor", "Tensor", "Optional[Tensor]", *["List[int]"] * 3, "int"]),
    ],
    ids=str,
)
def test_types(overload, types):
    assert [str(each.type) for each in overload._schema.arguments] == types


def test_results_have_names_and_say_what_they_share():
    assert [each.name for each in aten.max.dim._schema.returns] == ["values", "indices"]
    view = aten.view.default._schema
    assert not view.is_mutable and view.returns[0].alias_info.before_set == {"a"}
    assert aten.mul_.Tensor._schema.is_mutable and not aten.mul.Tensor._schema.is_mutable
    assert aten.conv2d.default._schema.arguments[3].default_value == [1, 1]
