"""The reference as the code has it: SQL, options, metrics, errors, routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from docs.make.tables import code, table
from icetree import errors
from icetree.serve.protocol import refusals
from icetree.serve.protocol.request import Answer
from icetree.serve.routes import ROUTES
from icetree.serve.watching import Watching
from icetree.spark.functions.calls import NAMES as FUNCTIONS
from icetree.spark.source.options import OPTIONS, Face, Option
from icetree.spark.sql import alter, caching, ddl, dml, extensions, show
from icetree.spark.sql.call.procedure import Parameter
from icetree.spark.sql.call.procedures import ELSEWHERE, PROCEDURES
from icetree.spark.sql.views import lasting_statements
from icetree.spark.sql.views import show as show_views
from icetree.table.inspect.inspect import Inspect
from icetree.tree.summary import OWN_NAMES

#: An example of each statement, by the name that Spark's parser has for it.
STATEMENTS: Final[Mapping[str, str]] = {
    "CreateTable": "CREATE TABLE db.t (id BIGINT) PARTITIONED BY (days(at)) TBLPROPERTIES (…)",
    "CreateTableLikeCommand": "CREATE TABLE db.t LIKE db.s",
    "ReplaceTable": "CREATE OR REPLACE TABLE db.t (id BIGINT)",
    "CreateTableAsSelect": "CREATE TABLE db.t AS SELECT …",
    "ReplaceTableAsSelect": "CREATE OR REPLACE TABLE db.t AS SELECT …",
    "DropTable": "DROP TABLE [IF EXISTS] db.t [PURGE]",
    "RenameTable": "ALTER TABLE db.t RENAME TO db.s; ALTER VIEW db.v RENAME TO db.w",
    "TruncateTable": "TRUNCATE TABLE db.t",
    "CreateView": "CREATE [OR REPLACE] VIEW [IF NOT EXISTS] db.v [(a COMMENT '…', b)] [COMMENT '…'] [TBLPROPERTIES (…)] AS SELECT …",
    "AlterViewAs": "ALTER VIEW db.v AS SELECT …",
    "SetViewProperties": "ALTER VIEW db.v SET TBLPROPERTIES (…)",
    "UnsetViewProperties": "ALTER VIEW db.v UNSET TBLPROPERTIES [IF EXISTS] (…)",
    "DropView": "DROP VIEW [IF EXISTS] db.v",
    "CreateNamespace": "CREATE NAMESPACE db",
    "DropNamespace": "DROP NAMESPACE db",
    "SetNamespaceProperties": "ALTER NAMESPACE db SET PROPERTIES (…)",
    "SetCatalogAndNamespace": "USE lake.db",
    "SetNamespaceCommand": "USE NAMESPACE db",
    "InsertIntoStatement": "INSERT INTO db.t …; INSERT OVERWRITE db.t [PARTITION (…)] …",
    "OverwriteByExpression": "INSERT INTO db.t REPLACE WHERE condition …",
    "DeleteFromTable": "DELETE FROM db.t WHERE condition",
    "UpdateTable": "UPDATE db.t SET column = value WHERE condition",
    "MergeIntoTable": "MERGE INTO db.t USING s ON condition WHEN MATCHED THEN … WHEN NOT MATCHED [BY SOURCE] THEN …",
    "DescribeRelation": "DESCRIBE [EXTENDED] db.t",
    "DescribeColumn": "DESCRIBE db.t column",
    "ShowTableProperties": "SHOW TBLPROPERTIES db.t",
    "ShowColumns": "SHOW COLUMNS IN db.t",
    "ShowPartitions": "SHOW PARTITIONS db.t",
    "ShowCreateTable": "SHOW CREATE TABLE db.t",
    "ShowTables": "SHOW TABLES IN db",
    "ShowNamespacesCommand": "SHOW NAMESPACES",
    "ShowNamespaces": "SHOW DATABASES",
    "DescribeNamespace": "DESCRIBE NAMESPACE db",
    "ShowCurrentNamespaceCommand": "SHOW CURRENT NAMESPACE",
    "ShowViews": "SHOW VIEWS IN db",
    "CacheTable": "CACHE [LAZY] TABLE db.t",
    "CacheTableAsSelect": "CACHE TABLE c AS SELECT …",
    "UncacheTable": "UNCACHE TABLE db.t",
    "ClearCacheCommand": "CLEAR CACHE",
    "RefreshTable": "REFRESH TABLE db.t",
    "AddColumns": "ALTER TABLE db.t ADD COLUMN c STRING [FIRST | AFTER b]",
    "DropColumns": "ALTER TABLE db.t DROP COLUMN c",
    "RenameColumn": "ALTER TABLE db.t RENAME COLUMN c TO d",
    "AlterColumns": "ALTER TABLE db.t ALTER COLUMN c TYPE BIGINT; … COMMENT '…'; … DROP NOT NULL",
    "SetTableProperties": "ALTER TABLE db.t SET TBLPROPERTIES (…)",
    "UnsetTableProperties": "ALTER TABLE db.t UNSET TBLPROPERTIES (…)",
    "CommentOnTable": "COMMENT ON TABLE db.t IS '…'",
}
#: Statements that Spark knows and that are refused, with what to do instead.
REFUSED: Final = ("ReplaceColumns", "SetTableLocation", "AddPartitions", "DropPartitions")

#: What a caller does about an error.
NEXT: Final[Mapping[str, str]] = {
    "IcetreeError": "catch it for all of these",
    "NotFound": "look at the name that the message gives; it says what is near",
    "AlreadyExists": "choose another name, or say `exist_ok=True`",
    "InvalidInput": "mend the call: the message says how",
    "CommitConflict": "read the table again, decide anew, and commit again",
    "CommitExhausted": "try later, or raise `commit.retry.total-timeout-ms`",
    "CommitUnknown": "look whether it landed (by its `key`, or in the history) before trying again",
    "Unavailable": "try later: nothing was changed",
    "CorruptTable": "`icetree verify`; find the writer of the file that is named",
    "TooLarge": "raise the limit that the message names, if the file can be trusted",
    "Unsupported": "do as the message says, or use what icetree can do",
}


def _declared() -> set[str]:
    registries = (ddl.STATEMENTS, dml.STATEMENTS, show.STATEMENTS, caching.STATEMENTS)
    views = (lasting_statements.STATEMENTS, show_views._LISTING)  # noqa: SLF001
    return set().union(*registries, *views, alter.ALTERATIONS)


def statements() -> str:
    """Return an example of every statement that the code carries out itself."""
    known = [name for name in STATEMENTS if name in _declared()]
    missing = _declared() - STATEMENTS.keys() - set(REFUSED)
    if missing:
        raise KeyError(
            f"no example of {', '.join(sorted(missing))} in docs/make/reference_parts.py"
        )
    lines = [code(each.strip()) for name in known for each in STATEMENTS[name].split(";")]
    lines += [
        code(f"ALTER TABLE db.t {' '.join(words)} …")
        for words, _ in extensions._CHANGES  # noqa: SLF001
    ]
    return "\n".join(f"- {line}" for line in lines)


def procedures() -> str:
    """Return every procedure of `CALL`."""
    rows = []
    for name, procedure in sorted(PROCEDURES.items()):
        taken = ", ".join(_parameter(each) for each in procedure.takes if each.refused is None)
        given = ", ".join(code(each) for each in procedure.gives.names)
        rows.append([code(name), taken, given])
    return table(
        ["procedure", "arguments, those in brackets optional", "columns of the answer"], rows
    )


def _parameter(each: Parameter) -> str:
    text = code(each.name) + (" (does nothing)" if each.idle else "")
    return text if each.required else f"[{text}]"


def procedures_elsewhere() -> str:
    """Return what Iceberg has and icetree does otherwise."""
    rows = [[code(name), instead] for name, instead in sorted(ELSEWHERE.items())]
    for name, procedure in sorted(PROCEDURES.items()):
        rows += [
            [f"{code(each.name)} of {code(name)}", each.refused]
            for each in procedure.takes
            if each.refused is not None
        ]
    return table(["not there", "instead"], rows)


def functions() -> str:
    """Return the functions that SQL has."""
    return ", ".join(code(f"system.{name}") for name in FUNCTIONS)


def source_options() -> str:
    """Return the options of the data source."""
    return table(
        ["option", "what it says", "for"],
        ([code(name), each.says, _faces(each)] for name, each in OPTIONS.items()),
    )


def _faces(option: Option) -> str:
    return ", ".join(
        each.value for each in Face if option.faces != set(Face) and each in option.faces
    )


def metadata_tables() -> str:
    """Return what can be looked into."""
    public = sorted(each for each in dir(Inspect) if not each.startswith("_"))
    return table(
        ["name", "what it has"],
        (
            [code(name), _first_line(getattr(Inspect, name)).removeprefix("Return ")]
            for name in public
        ),
    )


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def error_classes() -> str:
    """Return every error: what it means, what to do, and what a REST client is told."""
    rows = []
    for error in _errors():
        told = _told(error)
        rows.append([code(error.__name__), _first_line(error), NEXT[error.__name__], told])
    return table(["error", "what it says", "what to do", "in REST"], rows)


def _errors() -> Iterator[type[errors.IcetreeError]]:
    for each in vars(errors).values():
        if inspect.isclass(each) and issubclass(each, errors.IcetreeError):
            yield each


def _told(error: type[errors.IcetreeError]) -> str:
    for kind, status, type in refusals._TOLD:  # noqa: SLF001
        if issubclass(error, kind):
            named = [type] if type else refusals.NO_SUCH.values()
            return f"{status} {' or '.join(map(code, named))}"
    return "500 `InternalServerError`"


def metrics() -> str:
    """Return the names that the server counts under."""
    watching = Watching()
    request = _Asked()
    watching.tell(request, Answer(status=200, document={}), route="/r", who="w", seconds=0.01)  # type: ignore[arg-type]
    names: dict[str, set[str]] = {}
    for line in watching.text().splitlines():
        found = re.match(r"(\w+)\{(.*)\} ", line)
        if found:
            labels = re.findall(r'(\w+)="', found[2])
            names.setdefault(found[1], set()).update(labels)
    rows = [[code(name), ", ".join(map(code, sorted(labels)))] for name, labels in names.items()]
    return table(["metric", "labels"], rows)


class _Asked:
    """A request as far as counting looks at it."""

    method, path, peer = "GET", "/", "nobody"


def summary() -> str:
    """Return what icetree notes in the summary of a snapshot."""
    return ", ".join(code(name) for name in sorted(OWN_NAMES))


def routes() -> str:
    """Return every route of the REST catalog."""
    return table(["method", "path"], ([code(each.method), code(each.path)] for each in ROUTES))


PARTS: Final[dict[str, Callable[[], str]]] = {
    "statements": statements,
    "procedures": procedures,
    "procedures elsewhere": procedures_elsewhere,
    "functions": functions,
    "source options": source_options,
    "metadata tables": metadata_tables,
    "errors": error_classes,
    "metrics": metrics,
    "summary": summary,
    "routes": routes,
}
