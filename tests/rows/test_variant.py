"""Variants: written, read, stored apart, looked into and found by what is in them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec.variant.bounds import Ranges, decode
from icetree.codec.variant.paths import normalized, read_path
from icetree.codec.variant.read import Malformed, Primitive, leaves, names, require_sound
from icetree.codec.variant.write import encode, encode_array
from icetree.errors import CorruptTable, InvalidInput, Unsupported
from icetree.rows.formats.shred import inferred, shredded
from icetree.rows.variant import PAIR, as_pair
from icetree.table.table import Table
from tests.effort import law
from tests.rows.lake import files, new_table
from tests.rows.variants import pair, pairs, said
from tests.table.changing import LEAFY

SHREDS = {"write.parquet.shred-variants": "true"}

_SINGLES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9
    ),
    st.floats(allow_nan=False),
    st.text(max_size=70),
    st.binary(max_size=5),
    st.integers(-(10**6), 10**6).map(lambda day: Primitive("date", day)),
    st.sampled_from(["timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"]).flatmap(
        lambda kind: st.integers(-(2**62), 2**62).map(lambda at: Primitive(kind, at))
    ),
    st.binary(min_size=16, max_size=16).map(lambda each: Primitive("uuid", each)),
)
_KEYS = st.sampled_from(["a", "b", "user.name", "it's", ""])
VALUES = st.recursive(
    _SINGLES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=6,
)


def _table(**how: Any) -> Table:
    return new_table({"id": "int", "v": "variant"}, **how)


def _rows(*values: Any, start: int = 0) -> pa.Table:
    ids = pa.array(range(start, start + len(values)), pa.int32())
    return pa.table({"id": ids, "v": pairs(*values)})


def _found(table: Table, where: str) -> tuple[list[int], int]:
    scan = table.scan(where)
    return sorted(scan.to_arrow()["id"].to_pylist()), scan.plan().tasks.num_rows


@law(150)
@given(st.lists(st.one_of(VALUES, st.just(...)), min_size=1, max_size=6))
def test_a_variant_comes_back_from_parts_that_are_stored_apart(values: list[Any]) -> None:
    column = pairs(*values)
    again = as_pair(shredded(column, inferred(column)))
    assert again.type == PAIR
    assert [said(each) for each in again.to_pylist()] == [said(each) for each in column.to_pylist()]


@law(150)
@given(st.lists(VALUES, min_size=1, max_size=6))
def test_no_value_of_a_field_is_outside_its_bounds(values: list[Any]) -> None:
    ranges = Ranges()
    for value in values:
        ranges.add(*encode(value))
    ends = ranges.encoded(4)
    lower, upper = ({}, {}) if ends is None else map(decode, ends)
    assert lower.keys() == upper.keys()
    for value in values:
        metadata, content = encode(value)
        for path, single in leaves(content, names(metadata)):
            told = normalized(path)
            if told in lower and not (single is not None and single.kind == "null"):
                assert single is not None
                assert lower[told].kind == upper[told].kind == single.kind
                assert lower[told].value <= single.value <= upper[told].value


@law(200)
@given(
    VALUES, st.lists(st.tuples(st.booleans(), st.integers(0, 200), st.integers(0, 255)), max_size=4)
)
def test_bytes_of_all_kinds_are_variants_or_malformed(
    value: Any, changes: list[tuple[bool, int, int]]
) -> None:
    parts = [bytearray(each) for each in encode(value)]
    for which, at, byte in changes:
        part = parts[which]
        if at < len(part):
            part[at] = byte
        else:
            del part[at % (len(part) + 1) :]
    metadata, content = map(bytes, parts)
    Ranges().add(metadata, content)
    decode(metadata + content)
    try:
        require_sound(metadata, content)
    except Malformed:
        return
    column = pa.array([{"metadata": metadata, "value": content}], PAIR)
    inferred(column)


def test_a_variant_may_nest_as_deep_as_it_likes() -> None:
    value = encode(1)[1]
    for _ in range(5_000):
        value = encode_array([value])
    require_sound(b"\x01\0\0", value)
    table = _table(properties=SHREDS)
    table.append(
        pa.table(
            {
                "id": pa.array([1], pa.int32()),
                "v": pa.array([{"metadata": b"\x01\0\0", "value": value}], PAIR),
            }
        )
    )
    assert table.scan().to_arrow()["v"][0].as_py()["value"] == value


@pytest.mark.parametrize("text", ["a", "$x", "$.", "$[", "$['a]", "$..a", ""])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no path into a variant"):
        read_path(text)


def test_a_path_has_one_normal_form() -> None:
    for text in ("$.a.b[0]", "$['a']['b'][0]", '$["a"].b[0]'):
        assert read_path(text) == ("a", "b", 0)
    assert normalized(("user.name", "it's", 3)) == r"$['user.name']['it\'s'][3]"
    assert read_path(normalized(("user.name", "it's", 3))) == ("user.name", "it's", 3)


NESTED = {
    "id": "int",
    "v": "variant",
    "s": "struct<v: variant, n: int>",
    "l": "list<variant>",
    "m": "map<string, variant>",
}
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "v": pairs({"a": 1, "b": [Decimal("1.5"), None]}, ..., None),
        "s": pa.array(
            [{"v": pair("x"), "n": 1}, None, {"v": None, "n": 2}],
            pa.struct([("v", PAIR), ("n", pa.int32())]),
        ),
        "l": pa.array([[pair(1), None], None, []], pa.list_(PAIR)),
        "m": pa.array([[("k", pair({}))], None, [("z", None)]], pa.map_(pa.string(), PAIR)),
    }
)


@pytest.mark.parametrize("properties", [{}, SHREDS])
def test_variants_come_back_wherever_they_stand(properties: dict[str, str]) -> None:
    table = new_table(NESTED, properties=properties)
    table.append(ROWS)
    table.append(ROWS.select(["id"]))
    found = table.scan("v is not null or id = 2").to_arrow()
    assert found.slice(0, 3).to_pylist() == ROWS.to_pylist()
    with table.edit_schema() as edit:
        edit.add("s.w", "variant").rename("v", "w")
    assert table.scan().to_arrow()["w"].slice(0, 3).to_pylist() == ROWS["v"].to_pylist()
    assert table.verify(deep=True).is_clean
    [file, _] = files(table)
    stored = pq.ParquetFile(table.files.store.open(file), arrow_extensions_enabled=False)
    assert str(stored.schema).count("(Variant(1))") == 4


def test_fields_that_are_stored_apart_are_columns_with_statistics() -> None:
    table = _table(properties=SHREDS)
    table.append(_rows(*({"n": at, "s": f"x{at}", "o": {"d": 1.5 * at}} for at in range(20)), 5))
    [file] = files(table)
    stored = pq.ParquetFile(table.files.store.open(file), arrow_extensions_enabled=False)
    leaves = {stored.schema.column(at).path: at for at in range(len(stored.schema.names))}
    at = leaves["v.typed_value.n.typed_value"]
    told = stored.metadata.row_group(0).column(at).statistics
    assert (told.min, told.max) == (0, 19)
    assert "v.typed_value.o.typed_value.d.typed_value" in leaves
    assert stored.metadata.row_group(0).column(leaves["v.value"]).statistics is None
    assert [said(each) for each in table.scan().to_arrow()["v"].to_pylist()][-2:] == [
        {"n": 19, "s": "x19", "o": {"d": 28.5}},
        5,
    ]


@pytest.mark.parametrize("properties", [SHREDS, SHREDS | LEAFY])
def test_conditions_on_fields_find_the_same_rows_in_fewer_files(properties: dict[str, str]) -> None:
    table, plain = _table(properties=properties), _table()
    for at in range(6):
        rows = _rows(
            {"n": at * 10, "s": f"k{at}", "o": {"d": Decimal(at) / 2}},
            {"n": at * 10 + 5},
            ...,
            start=3 * at,
        )
        table.append(rows)
        plain.append(rows)
    wheres = {
        "variant_get(v, '$.n', 'long') > 42": ([13, 15, 16], 2),
        "variant_get(v, '$.n', 'int') between 20 and 24": ([6], 1),
        "variant_get(v, '$.n', 'double') < 0.5": ([0], 1),
        "variant_get(v, '$.n', 'long') in (15, 35)": ([4, 10], 2),
        "variant_get(v, '$[''s'']', 'string') = 'k3'": ([9], 1),
        "variant_get(v, '$.s', 'string') starts with 'k5'": ([15], 1),
        "variant_get(v, '$.o.d', 'decimal(5, 1)') >= 2": ([12, 15], 2),
        "variant_get(v, '$.nothing', 'long') = 1": ([], 6),
        "variant_get(v, '$.n', 'string') = '5'": ([], 6),
        "variant_get(v, '$.s', 'string') is null and id < 3": ([1, 2], 1),
        "variant_get(v, '$.n', 'long') != 0 and id < 3": ([1], 1),
    }
    for where, wanted in wheres.items():
        assert _found(table, where) == wanted, where
        assert _found(plain, where)[0] == wanted[0], where
    assert table.verify(deep=True).is_clean


def test_fields_of_several_kinds_have_no_bounds() -> None:
    ranges = Ranges()
    for value in (
        {"a": 1, "b": 1, "c": None},
        {"a": "x", "b": Decimal("2.5"), "c": 7},
        {"d": [1]},
        {"d": 2},
    ):
        ranges.add(*encode(value))
    ends = ranges.encoded(None)
    assert ends is not None
    assert decode(ends[1]) == {
        "$['b']": Primitive("exact", Decimal("2.5")),
        "$['c']": Primitive("exact", 7),
    }


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("variant_get(id, '$.a', 'int') = 1", "takes a variant"),
        ("variant_get(v, 'a', 'int') = 1", "no path into a variant"),
        ("variant_get(v, '$.a', 'list<int>') = 1", "hold no list<int>"),
        ("variant_get(v, '$.a', 'what') = 1", "not a type"),
        ("variant_get(v, '$.a') = 1", "expected ,"),
        ("variant_get(v, '$.a', 'int') = 'x'", "cannot be compared"),
        ("v = 1", "cannot be compared"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(where: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        _table().scan(where).to_arrow()


@pytest.mark.parametrize(
    "bad",
    [
        {"metadata": b"", "value": b"\0"},
        {"metadata": b"\x02\0\0", "value": b"\0"},
        {"metadata": b"\x01\0\0", "value": b""},
    ],
)
def test_bytes_that_do_not_begin_as_variants_are_refused(bad: dict[str, bytes]) -> None:
    table = _table()
    rows = pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([bad], PAIR)})
    with pytest.raises(InvalidInput, match="column v has values that are no variant"):
        table.append(rows)


def test_a_broken_variant_is_read_is_nowhere_and_is_found_by_deep_verification() -> None:
    table = _table(properties=SHREDS)
    broken = {"metadata": b"\x01\0\0", "value": b"\x02\x09"}
    column = pa.array([pair({"a": 1}), broken], PAIR)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "v": column}))
    assert table.scan().to_arrow()["v"].to_pylist()[1] == broken
    assert _found(table, "variant_get(v, '$.a', 'int') = 1")[0] == [1]
    assert _found(table, "variant_get(v, '$.a', 'int') is null")[0] == [2]
    [finding] = table.verify(deep=True).findings
    assert "column v has values that are no variant" in finding.rule


def test_deep_verification_knows_bounds_of_fields_cut_or_wrong() -> None:
    table, other = _table(properties=SHREDS), _table(properties=SHREDS)
    texts = [{"s": "same beginning for all, and then " + end, "n": 1} for end in "az"]
    table.append(_rows(*texts))
    other.append(_rows({"s": "zz", "n": 2}, {"s": "zzz"}))
    assert table.verify(deep=True).is_clean
    [file], [strange] = files(table), files(other)
    table.files.store.delete([file])
    table.files.store.write_new(file, other.files.store.read(strange))
    rules = [each.rule for each in table.verify(deep=True).findings]
    assert any("bounds of v $['s'] do not hold" in rule for rule in rules)


def test_parts_that_do_not_belong_together_are_corrupt() -> None:
    table = _table()
    table.append(_rows({"a": 1}))
    [file] = files(table)
    typed = pa.struct([("a", pa.struct([("typed_value", pa.int64())]))])
    parts = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", typed)])
    lost = {"metadata": b"\x01\0\0", "value": None, "typed_value": {"a": {"typed_value": 1}}}
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"}),
            pa.field("v", parts, metadata={"PARQUET:field_id": "2"}),
        ]
    )
    out = pa.BufferOutputStream()
    pq.write_table(pa.table([pa.array([1], pa.int32()), pa.array([lost], parts)], schema), out)
    table.files.store.delete([file])
    table.files.store.write_new(file, out.getvalue().to_pybytes())
    with pytest.raises(CorruptTable, match="lacks the name"):
        table.scan().to_arrow()
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [1]


def test_a_variant_is_no_partition_no_sort_key_and_has_no_default() -> None:
    for how in ({"partition_by": ["v"]}, {"order_by": ["v"]}):
        with pytest.raises(InvalidInput, match="which no transform takes"):
            _table(**how)
    with pytest.raises(InvalidInput, match="no default but null"), _table().edit_schema() as edit:
        edit.add("w", "variant", default={"a": 1})


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_formats_without_room_for_variants_say_so_and_write_nothing(format: str) -> None:
    table = _table(properties={"write.format.default": format})
    with pytest.raises(Unsupported, match=r"variant.*: use Parquet"):
        table.append(_rows({"a": 1}))
    assert table.refresh().current_snapshot is None
    assert list(table.files.store.list(f"{table.location}/data")) == []
