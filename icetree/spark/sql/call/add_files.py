"""`CALL system.add_files(…)`: which files a source has, a folder or a table of Spark's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from icetree.errors import InvalidInput, NotFound, Unsupported
from icetree.rows.adopt import path_values
from icetree.rows.formats.formats import FORMATS, format_by_name
from icetree.spark.complaints import plainly
from icetree.spark.names import quoted
from icetree.spark.sql.names import find_table
from icetree.spec.texts import did_you_mean
from icetree.table.commit.adopting import files_at
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_OTHERS: Final = frozenset({"csv", "json", "text"})
#: What Spark calls a table that has files, and is no view.
_STORED: Final = ("MANAGED", "EXTERNAL")


def source_files(
    lake: SparkLake, table: Table, parts: list[str], partition: Mapping[str, str]
) -> list[str]:
    """Return the files of `parquet.<path>`, `orc.<path>` or `avro.<path>`, or of a table of Spark's, in some partitions or in all."""
    kind = parts[0].lower()
    if len(parts) == 2 and kind in FORMATS:
        path = parts[1] if parts[1].endswith((f".{kind}", "/")) else f"{parts[1]}/"
        found = files_at(path, table.metadata, table.files.store)
        files = [file for file in found if format_by_name(file) == kind]
        if not files:
            raise NotFound(f"{path} has no {kind} files")
    elif len(parts) == 2 and kind in _OTHERS:
        raise Unsupported(f"{kind} files cannot be added: INSERT INTO … SELECT writes their rows")
    else:
        files = _files_of(lake, parts)
    return [file for file in files if _is_in(file, partition)] if partition else files


def _is_in(file: str, partition: Mapping[str, str]) -> bool:
    said = path_values(file)
    for name in partition:
        if name not in said:
            raise InvalidInput(
                f"{file} has no folder {name}=… in its path{did_you_mean(name, said)}"
            )
    return all(said[name] == value for name, value in partition.items())


def _files_of(lake: SparkLake, parts: list[str]) -> list[str]:
    name = ".".join(map(quoted, parts))
    called = ".".join(parts)
    if find_table(lake, parts) is not None:
        raise InvalidInput(
            f"{called} is a table of the lake, whose files are its own: INSERT INTO … SELECT copies "
            "its rows"
        )
    if not lake.spark.catalog.tableExists(name):
        raise NotFound(
            f"there is no {called} to add files from: give a table of Spark's, or `parquet`.`path`"
        )
    if lake.spark.catalog.getTable(name).tableType not in _STORED:
        raise InvalidInput(f"{called} is a view: name the table whose files are meant")
    with plainly():
        rows = lake.spark.table(name)
        found = sorted(unquote(file) for file in rows.inputFiles())
        columns = lake.spark.catalog.listColumns(name)
    for file in found:
        missing = [each.name for each in columns if each.isPartition]
        missing = [each for each in missing if each not in path_values(file)]
        if missing:
            raise InvalidInput(
                f"{file} has no folder {missing[0]}=… in its path, to tell its partition"
            )
    return found
