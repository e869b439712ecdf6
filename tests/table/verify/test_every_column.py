"""Deep verification reads what scans of the past read: columns that have gone since, however deep."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.spec.location import absolute
from icetree.table.table import Table
from tests.table.damage import flipped
from tests.table.lake import connection

_PAIR = pa.struct([("a", pa.string()), ("b", pa.string())])
_ROWS = pa.schema(
    [
        ("n", pa.int64()),
        ("one", _PAIR),
        ("gone", _PAIR),
        ("many", pa.list_(_PAIR)),
        ("named", pa.map_(pa.string(), _PAIR)),
    ]
)
_DROPPED = ("one.b", "gone", "many.element.b", "named.value.b")


def _row(n: int) -> dict[str, object]:
    def pair(where: str) -> dict[str, str]:
        return {"a": f"{where} a {n}", "b": f"{where} b {n}"}

    return {
        "n": n,
        "one": pair("one"),
        "gone": pair("gone"),
        "many": [pair("many")],
        "named": [("k", pair("named"))],
    }


def _table() -> Table:
    """A table whose first file has columns that have gone since, some twice."""
    plain = {"write.parquet.compression-codec": "uncompressed"}
    table = connection().create_table("db.t", _ROWS, properties=plain)
    table.append(pa.Table.from_pylist([_row(1), _row(2)], _ROWS))
    for name in (*_DROPPED, "n"):
        with table.edit_schema() as edit:
            edit.drop(name)
    with table.edit_schema() as edit:
        edit.add("n", "string")
        edit.add("one.b", "long")
    later = pa.table({"n": ["x"], "one": [{"a": "y", "b": 7}]})
    table.append(later)
    with table.edit_schema() as edit:
        edit.drop("n")
    return table


def test_a_table_whose_columns_have_gone_is_clean() -> None:
    table = _table()
    report = table.verify(deep=True)
    assert report.findings == ()
    assert report.counts["rows"] == 3


@pytest.mark.parametrize("where", ["one", "gone", "many", "named"])
def test_damage_to_a_column_that_has_gone_is_named(where: str) -> None:
    table = _table()
    [name] = [row["file_path"] for row in table.inspect.files(at=_first(table)).to_pylist()]
    store, place = table.files.store, absolute(name, table.location)
    content = store.read(place)
    at = content.index(f"{where} b 2".encode())
    store.delete([place])
    store.write_new(place, flipped(content, at))
    [found] = table.verify(deep=True).findings
    assert "CRC" in found.rule.upper() or "checksum" in found.rule


def _first(table: Table) -> int:
    return [*table.history()][-1].snapshot_id
