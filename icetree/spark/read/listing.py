"""A list of files handed to Spark as it is, so that Spark lists nothing itself.

`spark.read.parquet(*files)` asks the file system about every path: seconds for a thousand. A folder
with the log of a streaming sink is read without asking. The log is old and stable, but internal to
Spark: this is the only place that knows of it, and a test notices when Spark changes it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icetree.spec.location import AZURE, GCS, LOCAL, S3, scheme_of
from icetree.store.places import local_path

#: The columns of a scan that tell of each row where it stands.
ORDINAL: Final = "__icetree_file"
POSITION: Final = "__icetree_pos"
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


def read_listed(spark: SparkSession, files: pa.Table, schema: StructType) -> DataFrame:
    """Return the rows of Parquet files, unread, of which SQL can tell where they stand.

    `files` are as `listed` makes them.
    """
    with _log(files) as folder:
        # Columns are found by id, as `SparkLake` has told the session; a file without any is an error.
        return spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(folder)


def address(location: str) -> str:
    """Return a location as Spark wants it: a URI that Hadoop has a file system for."""
    scheme = scheme_of(location)
    if scheme in LOCAL:
        return "file://" + quote(local_path(location))
    rest = location.partition("://")[2]
    if scheme in S3:
        return "s3a://" + quote(rest)
    if scheme in GCS:
        return "gs://" + quote(rest)
    if scheme in AZURE:
        return f"{scheme}://" + quote(rest, safe="/@")
    return quote(location, safe="/:")


def _addresses(locations: pa.Array) -> pa.Array:
    """Do `address` for many, most of which have names without anything odd."""
    plain = pc.match_substring_regex(locations, r"^(file://)?/[A-Za-z0-9_.=/-]*$")
    paths = pc.replace_substring_regex(locations, r"^file://", "", max_replacements=1)
    found = pc.binary_join_element_wise("file://", paths, "")
    if pc.all(plain).as_py():
        return found
    odd = pa.array([address(each) for each in locations.filter(pc.invert(plain)).to_pylist()])
    return pc.replace_with_mask(found, pc.invert(plain), odd.cast(found.type))


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
        _addresses(location),
        '","size":',
        pc.cast(size, pa.string()),
        ',"isDir":false,"modificationTime":',
        pc.cast(ordinal, pa.string()),
        ',"blockReplication":1,"blockSize":134217728,"action":"add"}',
        "",
    )
