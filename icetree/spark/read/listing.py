"""A list of files handed to Spark as it is, so that Spark lists nothing itself.

`spark.read.parquet(*files)` asks the file system about every path: seconds for a thousand. A folder
with the log of a streaming sink is read without asking. The log is old and stable, but internal to
Spark: this is the only place that knows of it, and a test notices when Spark changes it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icetree.spark.read.addresses import addresses
from icetree.spark.read.internals import found_by_id

#: The columns of a scan that tell of each row where it stands.
ORDINAL: Final = "__icetree_file"
POSITION: Final = "__icetree_pos"
#: Whether a row is deleted, among rows that are there although they are.
GONE: Final = "__icetree_gone"
#: What they are in the rows of `read_listed`.
ORDINAL_SQL: Final = "CAST(unix_millis(_metadata.file_modification_time) AS INT)"
POSITION_SQL: Final = "_metadata.row_index"

_FILES: Final = pa.schema(
    [("location", pa.string()), ("size_bytes", pa.int64()), ("ordinal", pa.int64())]
)
NO_FILES: Final = _FILES.empty_table()


def listed(locations: pa.Array, sizes: pa.Array, ordinals: pa.Array) -> pa.Table:
    """Return files to read, with the number by which the rows of each are told from others'."""
    sizes, ordinals = (pc.cast(each, pa.int64()) for each in (sizes, ordinals))
    return pa.table([locations, sizes, ordinals], schema=_FILES)


def read_listed(
    spark: SparkSession,
    files: pa.Table,
    schema: StructType,
    options: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """Return the rows of Parquet files, unread, of which SQL can tell where they stand.

    `files` are as `listed` makes them, `options` those of Parquet's reader.
    """
    with _log(files) as folder:
        # A file without any ids is an error.
        reader = spark.read.schema(schema).options(**options)
        return found_by_id(reader.option("recursiveFileLookup", "true").parquet(folder))


@contextmanager
def _log(files: pa.Table) -> Iterator[str]:
    """Make a folder with a sink's log; Spark reads all of it at once, then it can go."""
    folder = Path(tempfile.mkdtemp(prefix="icetree-scan-"))
    try:
        log = folder / "_spark_metadata"
        log.mkdir()
        (log / "0").write_text("\n".join(["v1", *_lines(files).to_pylist()]))
        yield folder.as_uri()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines(files: pa.Table) -> pa.Array:
    """Return a line of the log for each file; no address has a character that JSON would escape."""
    location, size, ordinal = (column.combine_chunks() for column in files.columns)
    return pc.binary_join_element_wise(
        '{"path":"',
        addresses(location),
        '","size":',
        pc.cast(size, pa.string()),
        ',"isDir":false,"modificationTime":',
        pc.cast(ordinal, pa.string()),
        ',"blockReplication":1,"blockSize":134217728,"action":"add"}',
        "",
    )
