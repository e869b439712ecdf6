"""What is changed in a footer before Arrow reads it: one key, and nothing that only looks like it."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.codec.parquet.footer import ARROW_SCHEMA, Footer, parse_footer, read_footer
from icetree.codec.parquet.parquet import without_arrow_schema
from icetree.errors import CorruptTable

KEY = ARROW_SCHEMA.decode()


def footer_of(table: pa.Table, told: dict[str, str], **options: Any) -> Footer:
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema, **options) as writer:
        writer.add_key_value_metadata(told)
        writer.write_table(table)
    return read_footer(pa.BufferReader(out.getvalue()), file="f")


def seen(footer: Footer) -> pq.FileMetaData:
    """What Arrow reads where the schema that a writer embedded was taken away."""
    return without_arrow_schema(footer)


@pytest.mark.parametrize("name", [KEY, "a"])
@pytest.mark.parametrize("value", [f"{KEY}X", "b"])
@pytest.mark.parametrize("told", [{"k": KEY, f"{KEY}2": "v"}, {"ARROW:hidden": "v"}, None])
@pytest.mark.parametrize("embedded", [True, False])
def test_only_the_key_is_hidden_and_not_what_is_spelt_alike(
    embedded: bool, told: dict[str, str] | None, value: str, name: str
) -> None:
    """A bound that became smaller would prune rows that are there."""
    schema = pa.schema([pa.field(name, pa.large_string())])
    footer = footer_of(pa.table([[value]], schema=schema), told or {}, store_schema=embedded)
    found = seen(footer)
    assert found.row_group(0).column(0).statistics.max == value
    assert found.row_group(0).column(0).path_in_schema == name
    assert ARROW_SCHEMA not in (found.metadata or {})
    assert found.schema.to_arrow_schema().field(0).type == pa.string()
    for key, text in (told or {}).items():
        assert found.metadata[key.encode()] == text.encode()


def test_keys_that_are_none_make_a_footer_corrupt() -> None:
    footer = footer_of(pa.table({"a": [1]}), {})
    at = footer.content.index(ARROW_SCHEMA)
    broken = footer.content[: at - 1] + b"\x7f" + footer.content[at:]
    with pytest.raises(CorruptTable, match="broken Parquet footer"):
        parse_footer(broken, file="f", file_bytes=footer.file_bytes).without_arrow_schema()
