"""Statements of other engines: none is carried out on the lake, each is told what to do instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.sql.names import find_table
from icetree.spark.tokens import Cursor, first_words
from icetree.spark.trees import parse

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_HISTORY: Final = "SELECT * FROM db.t.snapshots, or db.t.history, tells of the past"
_REFS: Final = "SELECT * FROM db.t.refs lists branches and tags"
_BACK: Final = "CALL system.rollback_to_snapshot('db.t', id) goes back, rollback_to_timestamp too"
_COMPACT: Final = (
    "CALL system.rewrite_data_files('db.t') writes larger files, in a sort order or z-order too"
)
_KEPT: Final = (
    "CALL system.expire_snapshots('db.t') deletes files of old snapshots, "
    "system.remove_orphan_files('db.t') those that nothing names"
)
_LOAD: Final = (
    "INSERT INTO t SELECT * FROM parquet.`path` loads rows, CALL system.add_files takes the files"
)
_CLONE: Final = "lake.copy_table('db.t', to) copies a table, CREATE TABLE x LIKE t the layout"
_DESCRIBE: Final = ("DESCRIBE", "DESC")
#: How statements start, and what to do instead.
_INSTEAD: Final[Mapping[tuple[str, ...], str]] = {
    ("DESCRIBE", "HISTORY"): _HISTORY,
    ("DESC", "HISTORY"): _HISTORY,
    ("SHOW", "HISTORY"): _HISTORY,
    ("SHOW", "SNAPSHOTS"): _HISTORY,
    ("DESCRIBE", "DETAIL"): "DESCRIBE EXTENDED t tells of a table",
    ("DESC", "DETAIL"): "DESCRIBE EXTENDED t tells of a table",
    ("SHOW", "BRANCHES"): _REFS,
    ("SHOW", "TAGS"): _REFS,
    ("SHOW", "REFS"): _REFS,
    ("OPTIMIZE",): _COMPACT,
    ("REORG", "TABLE"): _COMPACT,
    ("VACUUM",): _KEPT,
    ("PURGE",): _KEPT,
    ("RESTORE",): _BACK,
    ("FLASHBACK",): _BACK,
    ("ROLLBACK",): _BACK,
    ("UNDROP",): "CALL system.register_table('db.t', metadata_file) gives a name back",
    ("COPY", "INTO"): _LOAD,
    ("CONVERT", "TO"): _LOAD,
    ("CLONE",): _CLONE,
    ("MSCK",): "the table knows its files: there is nothing to repair by listing them",
    ("FSCK",): "table.verify() and table.repair() look for what is broken",
    ("CREATE", "BRANCH"): "ALTER TABLE t CREATE BRANCH makes one",
    ("CREATE", "TAG"): "ALTER TABLE t CREATE TAG makes one",
    ("MERGE", "BRANCH"): "CALL system.fast_forward('db.t', branch, to) moves one ahead",
}
#: What may stand between those words and the name of a table.
_BETWEEN: Final = ("REPAIR", "TABLE", "IN", "FROM", "IF", "EXISTS")


def refuse_others(lake: SparkLake, text: str) -> None:
    """Raise `Unsupported` for a statement that another engine would know.

    What Spark can read, for its own tables or with the parser of another format, is let pass unless
    it names a table of the lake.
    """
    start = first_words(text, 2)
    words = start if start in _INSTEAD else start[:1]
    if words not in _INSTEAD or (words[0] in _DESCRIBE and _is_known(lake, words[1])):
        return
    if _is_about_the_lake(lake, text, words) or not _can_be_read(lake, text):
        raise Unsupported(f"{' '.join(words)} is no statement here: {_INSTEAD[words]}")


def _is_known(lake: SparkLake, name: str) -> bool:
    """Tell whether this is the name of a table, of which a column may be described."""
    if lake.spark.catalog.tableExists(name):
        return True
    return any(find_table(lake, [each]) is not None for each in (name, name.lower()))


def _is_about_the_lake(lake: SparkLake, text: str, words: Sequence[str]) -> bool:
    cursor = Cursor(text)
    cursor.expect(*words)
    while any(cursor.accept(each) for each in _BETWEEN):
        pass
    try:
        parts = cursor.name()
    except InvalidInput:
        return False
    return find_table(lake, parts) is not None


def _can_be_read(lake: SparkLake, text: str) -> bool:
    try:
        parse(lake.spark, text)
    except InvalidInput:
        return False
    return True
