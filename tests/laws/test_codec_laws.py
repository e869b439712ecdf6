"""Manifests in bytes: what goes in comes out, whatever it is and whoever reads it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.codec import manifest
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    BASE_COLUMNS,
    DATA,
    DELETE,
    POSITION,
    ROOT,
    Entries,
    Entry,
    Status,
    to_table,
)
from icetree.spec.entry.stats import FieldStats
from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD
from icetree.spec.schema.shape import Shape
from tests.effort import law
from tests.laws.leaves import ALL, EVERY_TYPE, FIELD_OF, LEAF, ONE_LONG, long_leaf, two_of_a_name
from tests.laws.manifests import manifests
from tests.laws.same import require_same

pytestmark = pytest.mark.law

SIZES = (0, 1, 127, 128, 129, 9000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [ROOT, DATA, DELETE])
def test_what_is_encoded_is_decoded(kind: str, size: int) -> None:
    @(law(2, usual=1) if size > 1000 else law(20, usual=12))
    @given(manifests(kind, size))
    def holds(entries: Entries) -> None:
        stored = manifest.encode(entries, kind, EVERY_TYPE)
        found = manifest.decode(stored, kind, EVERY_TYPE, file="m")
        assert found.num_rows == size
        assert found.column_names[: len(BASE_COLUMNS)] == list(BASE_COLUMNS)
        require_same(found, entries)

    holds()


@pytest.mark.parametrize("size", [1, 200])
@given(data=st.data())
@law(25)
def test_reading_fewer_columns_reads_the_same_values(data: st.DataObject, size: int) -> None:
    entries = data.draw(manifests(DATA, size))
    stored = manifest.encode(entries, DATA, EVERY_TYPE)
    whole = manifest.decode(stored, DATA, EVERY_TYPE, file="m", tracking=LEAF)
    wanted = data.draw(st.sets(st.sampled_from(whole.column_names)))
    narrow = manifest.decode(
        stored, DATA, EVERY_TYPE, file="m", tracking=LEAF, columns=wanted | {POSITION}
    )
    assert set(narrow.column_names) == wanted | {POSITION}
    require_same(narrow, whole.select([*(wanted - {POSITION}), POSITION]))


def test_a_column_of_nulls_is_not_stored_and_reads_as_nulls() -> None:
    plain = Entry(
        location="a", file_size_in_bytes=1, snapshot_id=1, stats={3: FieldStats(values=1)}
    )
    stored = manifest.encode(to_table([plain], EVERY_TYPE), DATA, EVERY_TYPE)
    names = set(pq.ParquetFile(pa.BufferReader(stored)).schema_arrow.names)
    assert names == {
        *("content_type", "location", "file_format", "tracking_info", "partition_spec_id"),
        *("record_count", "file_size_in_bytes", "content_stats"),
    }
    found = manifest.decode(stored, DATA, EVERY_TYPE, file="m")
    assert found["sort_order_id"].null_count == 1
    assert [name for name in found.column_names if ":" in name] == ["3:values"]


def test_row_ids_count_live_files_without_one_in_order() -> None:
    entries = long_leaf(2, ONE_LONG)
    stored = manifest.encode(entries, DATA, ONE_LONG)
    found = manifest.decode(stored, DATA, ONE_LONG, file="m", tracking=LEAF)
    columns = ("status", "first_row_id", "record_count")
    following, expected = 1000, []
    for status, own, rows in zip(*(entries[n].to_pylist() for n in columns), strict=True):
        takes = own is None and status != Status.DELETED
        expected.append(following if takes else own)
        following += rows if takes else 0
    assert found["first_row_id"].to_pylist() == expected


def test_columns_are_found_by_id_whatever_they_are_called_by_now() -> None:
    renamed = Shape(
        schema=Schema(
            *(
                NestedField(id, f"{name}, née {id}.", ALL[name].type)
                for name, id in FIELD_OF.items()
            )
        )
    )

    @law(15)
    @given(manifests(DATA, 3))
    def holds(entries: Entries) -> None:
        stored = manifest.encode(entries, DATA, EVERY_TYPE)
        require_same(manifest.decode(stored, DATA, renamed, file="m"), entries)
        again = manifest.encode(entries, DATA, renamed)
        require_same(manifest.decode(again, DATA, EVERY_TYPE, file="m"), entries)

    holds()


@pytest.mark.parametrize("size", [2, 200])
def test_fields_that_share_a_name_keep_their_own_stats(size: int) -> None:
    shape = two_of_a_name()
    bounds = {1: (1, 2), 2: (10, 20), 3: ("a", "b"), 5: (100, 200), 6: ("x", "y")}
    told = {id: FieldStats(lower=low, upper=up, values=id) for id, (low, up) in bounds.items()}
    files = [Entry(location=str(i), file_size_in_bytes=1, stats=told) for i in range(size)]
    entries = to_table(files, shape)
    stored = manifest.encode(entries, DATA, shape)
    require_same(manifest.decode(stored, DATA, shape, file="m"), entries)
    for id in bounds:
        names = {stats.column(id, stat) for stat in ("lower", "upper")}
        narrow = manifest.decode(stored, DATA, shape, file="m", columns=names)
        require_same(narrow, entries.select(sorted(names)))


def test_stats_of_row_lineage_are_kept() -> None:
    told = {
        ROW_ID_FIELD: FieldStats(lower=5, upper=9, values=3),
        LAST_UPDATED_SEQUENCE_NUMBER_FIELD: FieldStats(lower=1, upper=2),
    }
    file = Entry(location="a", file_size_in_bytes=1, stats=told)
    entries = to_table([file], ONE_LONG)
    stored = manifest.encode(entries, DATA, ONE_LONG)
    require_same(manifest.decode(stored, DATA, ONE_LONG, file="m"), entries)
