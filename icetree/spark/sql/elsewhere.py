"""Statements of other engines: none is carried out, each is told what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icetree.errors import Unsupported
from icetree.spark.sql.names import find_table
from icetree.spark.sql.tokens import Cursor
from icetree.spark.sql.views import temporary_view

if TYPE_CHECKING:
    from icetree.spark.lake import Lake

_HISTORY: Final = "SELECT * FROM db.t.snapshots, or db.t.history, tells of the past"
_REFS: Final = "SELECT * FROM db.t.refs lists branches and tags"
_BACK: Final = "lake.handle('db.t').rollback(snapshot_id), or at_ms=…, goes back"
_COMPACT: Final = (
    "commits keep the metadata compact; INSERT OVERWRITE t SELECT * FROM t writes larger files"
)
_KEPT: Final = (
    "nothing is expired or deleted by a statement; files stay until somebody removes them"
)
_LOAD: Final = "INSERT INTO t SELECT * FROM parquet.`path` loads files, and so does lake.write"
_CLONE: Final = "CREATE TABLE x AS SELECT * FROM t copies rows, CREATE TABLE x LIKE t the layout"
#: How statements start, and what to do instead.
_INSTEAD: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("DESCRIBE", "HISTORY"), _HISTORY),
    (("DESC", "HISTORY"), _HISTORY),
    (("SHOW", "HISTORY"), _HISTORY),
    (("SHOW", "SNAPSHOTS"), _HISTORY),
    (("DESCRIBE", "DETAIL"), "DESCRIBE EXTENDED t tells of a table"),
    (("DESC", "DETAIL"), "DESCRIBE EXTENDED t tells of a table"),
    (("SHOW", "BRANCHES"), _REFS),
    (("SHOW", "TAGS"), _REFS),
    (("SHOW", "REFS"), _REFS),
    (("OPTIMIZE",), _COMPACT),
    (("REORG", "TABLE"), _COMPACT),
    (("VACUUM",), _KEPT),
    (("PURGE",), _KEPT),
    (("RESTORE",), _BACK),
    (("FLASHBACK",), _BACK),
    (("ROLLBACK",), _BACK),
    (("UNDROP",), "lake.connection.register_table(name, metadata_location) gives a name back"),
    (("COPY", "INTO"), _LOAD),
    (("CONVERT", "TO"), _LOAD),
    (("CLONE",), _CLONE),
    (("MSCK",), "the table knows its files: there is nothing to repair by listing them"),
    (("FSCK",), "table.verify() and table.repair() look for what is broken"),
    (("CREATE", "BRANCH"), "ALTER TABLE t CREATE BRANCH makes one"),
    (("CREATE", "TAG"), "ALTER TABLE t CREATE TAG makes one"),
    (("MERGE", "BRANCH"), "lake.handle('db.t').fast_forward(branch, to) moves one ahead"),
)


def refuse_others(lake: Lake, text: str) -> None:
    """Raise `Unsupported` for a statement that another engine would know."""
    for words, instead in _INSTEAD:
        if not Cursor(text).accept(*words):
            continue
        if words[0] in ("DESCRIBE", "DESC") and _is_known(lake, words[1]):
            return
        raise Unsupported(f"{' '.join(words)} is no statement here: {instead}")


def _is_known(lake: Lake, name: str) -> bool:
    """Tell whether this is the name of a table, of which a column may be described."""
    names = (name, name.lower())
    return any(
        temporary_view(lake.spark, [each]) is not None or find_table(lake, [each]) is not None
        for each in names
    )
