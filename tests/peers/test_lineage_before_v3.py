"""Columns of lineage in files of tables that know of none: they are like any columns of others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from tests.table.moving.old_tables import lake_on, uri

#: As a table of version 3 may have written them: `_row_id` and `_last_updated_sequence_number`.
LINEAGE = {"_row_id": 2147483540, "_last_updated_sequence_number": 2147483539}


def add(theirs: Table, place: Path, ids: list[int]) -> None:
    """Add a file whose rows tell ids that others have, too, and ages above the table's."""
    fields = {"id": 1, **LINEAGE}
    schema = pa.schema(
        [
            pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(id)})
            for name, id in fields.items()
        ]
    )
    many = len(ids)
    pq.write_table(pa.table([ids, [7] * many, [50] * many], schema=schema), place)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=place.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=many,
        file_size_in_bytes=place.stat().st_size,
        spec_id=0,
    )
    with theirs.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(file)


def test_a_table_of_version_2_is_clean_whatever_its_files_say_of_lineage(tmp_path: Path) -> None:
    catalog = SqlCatalog("main", uri=uri(tmp_path), warehouse=(tmp_path / "lake").as_uri())
    catalog.create_namespace_if_not_exists("db")
    schema = pa.schema([("id", pa.int64())])
    theirs = catalog.create_table("db.old", schema, properties={"format-version": "2"})
    add(theirs, tmp_path / "lake" / "one.parquet", [1, 2])
    add(theirs, tmp_path / "lake" / "two.parquet", [3])
    with lake_on(tmp_path) as lake:
        table = lake.table("db.old")
        assert table.metadata.format_version == 2
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert not table.verify(deep=True).findings
