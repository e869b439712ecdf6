"""A list of files handed to Spark as it is, so that Spark lists nothing itself.

`spark.read.parquet(*files)` asks the file system about every path: seconds for a thousand. A folder
with the log of a streaming sink is read without asking. The log is old and stable, but internal to
Spark: this is the only place that knows of it, and a test notices when Spark changes it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icetree.store.places import LOCAL, S3, local_path, scheme_of

#: The columns of a scan that tell of each row where it stands.
ORDINAL: Final = "__icetree_file"
POSITION: Final = "__icetree_pos"
#: What they are in the rows of `read_listed`.
ORDINAL_SQL: Final = "CAST(unix_millis(_metadata.file_modification_time) AS INT)"
POSITION_SQL: Final = "_metadata.row_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file to read, and the number by which its rows are told apart from others'."""

    location: str
    size_bytes: int
    ordinal: int


def read_listed(spark: SparkSession, files: Iterable[ListedFile], schema: StructType) -> DataFrame:
    """Return the rows of Parquet files, unread, of which SQL can tell where they stand."""
    with _log(files) as folder:
        # Columns are found by id, as `Lake` has told the session; a file without any is an error.
        return spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(folder)


def address(location: str) -> str:
    """Return a location as Spark wants it: a URI that Hadoop has a file system for."""
    scheme = scheme_of(location)
    if scheme in LOCAL:
        return "file://" + quote(local_path(location))
    if scheme in S3:
        rest = location.partition("://")[2]
        return "s3a://" + quote(rest)
    return location


@contextmanager
def _log(files: Iterable[ListedFile]) -> Iterator[str]:
    """Make a folder with a sink's log; Spark reads all of it at once, then it can go."""
    folder = Path(tempfile.mkdtemp(prefix="icetree-scan-"))
    try:
        log = folder / "_spark_metadata"
        log.mkdir()
        with (log / "0").open("w") as out:
            out.write("v1")
            for file in files:
                out.write("\n" + _line(file))
        yield folder.as_uri()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _line(file: ListedFile) -> str:
    return json.dumps(
        {
            "path": address(file.location),
            "size": file.size_bytes,
            "isDir": False,
            "modificationTime": file.ordinal,
            "blockReplication": 1,
            "blockSize": 128 * 1024 * 1024,
            "action": "add",
        }
    )
