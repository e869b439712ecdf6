"""The values that the specification's appendices give, one by one, as `appendices.json` has them.

Hashes are of appendix B, bytes and JSON of D, names of types of C, corners of boxes of G.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.transforms import parse_transform
from pyiceberg.types import BinaryType, FixedType, IcebergType

from icetree.codec.json_values import json_values
from icetree.codec.single_value import decode_bounds
from icetree.codec.single_value_bytes import encode_bounds
from icetree.errors import InvalidInput
from icetree.rows.schema import default_array, plain
from icetree.rows.transform import transformed
from icetree.spec.schema.default_values import default_json
from icetree.spec.schema.text import read_type
from icetree.spec.schema.types import bounds_type, parse_type, type_text
from tests.rows.lake import new_table

VECTORS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("appendices.json").read_text())
_LARGEST = 2**31 - 1


def _said(vector: Any) -> str:
    return vector if isinstance(vector, str) else " ".join(map(str, vector.values()))


def _value(json: Any, type: IcebergType) -> pa.Array:
    return plain(default_array(json, type, 1, where="the vector"))


def _result(array: pa.Array) -> Any:
    plainly = array.cast(pa.int32()) if pa.types.is_date(array.type) else array
    return plainly[0].as_py()


@pytest.mark.parametrize("vector", VECTORS["hashes"], ids=_said)
def test_a_value_has_its_hash(vector: dict[str, Any]) -> None:
    type = read_type(vector["type"])
    bucket = transformed(
        _value(vector["value"], type), parse_transform(f"bucket[{_LARGEST}]"), type
    )
    assert bucket[0].as_py() == vector["hash"] & _LARGEST


@pytest.mark.parametrize("type", VECTORS["not bucketed"])
def test_a_type_without_hashes_is_not_bucketed(type: str) -> None:
    with pytest.raises(InvalidInput, match="cannot partition by"):
        new_table({"id": "int", "c": type}, partition_by=["bucket(4, c)"])


@pytest.mark.parametrize("vector", VECTORS["truncations"], ids=_said)
def test_a_value_is_truncated(vector: dict[str, Any]) -> None:
    type = read_type(vector["type"])
    transform = parse_transform(f"truncate[{vector['width']}]")
    found = transformed(_value(vector["value"], type), transform, type)
    assert found.equals(_value(vector["truncated"], type))


@pytest.mark.parametrize("vector", VECTORS["periods"], ids=_said)
def test_a_time_is_in_its_period(vector: dict[str, Any]) -> None:
    type = read_type(vector["type"])
    found = transformed(_value(vector["value"], type), parse_transform(vector["transform"]), type)
    assert _result(found) == vector["result"]


@pytest.mark.parametrize("vector", VECTORS["bytes"], ids=_said)
def test_a_value_has_its_bytes(vector: dict[str, Any]) -> None:
    type, content = read_type(vector["type"]), bytes.fromhex(vector["bytes"])
    value = _value(vector["value"], type)
    assert encode_bounds(value, type)[0].as_py() == content
    assert decode_bounds(pa.array([content]), type, file="f", what="bound").equals(value)


@pytest.mark.parametrize("vector", VECTORS["corners"], ids=_said)
def test_a_corner_of_a_box_has_its_bytes(vector: dict[str, Any]) -> None:
    type, content = read_type(vector["type"]), bytes.fromhex(vector["bytes"])
    corner = pa.array([vector["corner"]], bounds_type(type))
    assert encode_bounds(corner, type)[0].as_py() == content
    again = decode_bounds(pa.array([content]), type, file="f", what="bound")
    assert again.to_pylist() == corner.to_pylist()


@pytest.mark.parametrize("vector", VECTORS["json"], ids=_said)
def test_a_value_has_its_json(vector: dict[str, Any]) -> None:
    type, told = read_type(vector["type"]), vector["json"]
    assert default_json(told, type, where="the vector") == told
    if type.is_primitive:
        [text] = json_values(_value(told, type), type).to_pylist()
        found = json.loads(text)
        # Digits of bytes come in either case.
        is_bytes = isinstance(type, BinaryType | FixedType)
        assert (found.lower() if is_bytes else found) == told
    else:
        assert pc.is_valid(default_array(told, type, 1, where="the vector"))[0].as_py()


@pytest.mark.parametrize("vector", VECTORS["types"], ids=_said)
def test_a_type_has_its_name(vector: dict[str, Any]) -> None:
    assert type_text(parse_type(vector["written"])) == vector["name"]
