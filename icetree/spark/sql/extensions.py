"""What Iceberg adds to `ALTER TABLE`: partition fields, write order, identifiers, branches, tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.spark.sql.columns import own_path
from icetree.spark.sql.names import table_to_alter
from icetree.spark.tokens import Cursor, first_words
from icetree.spec.edit import refs
from icetree.spec.edit.refs import Retention
from icetree.spec.properties.names import DISTRIBUTION
from icetree.spec.schema.columns import identifier_names
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_UNIT_MS: Final = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000}


def run_extension(lake: SparkLake, text: str) -> bool:
    """Carry out a statement that only Iceberg knows; false where it is none."""
    if first_words(text, 2) != ("ALTER", "TABLE"):
        return False
    cursor = Cursor(text)
    cursor.expect("ALTER", "TABLE")
    try:
        parts = cursor.name()
    except InvalidInput:
        return False
    for words, change in _CHANGES:
        if cursor.accept(*words):
            change(lake.table(table_to_alter(lake, parts)), cursor)
            return True
    return False


def _add_field(table: Table, cursor: Cursor) -> None:
    term, name = _term(cursor)
    cursor.end()
    with table.edit_spec() as spec:
        spec.add(term, name)


def _drop_field(table: Table, cursor: Cursor) -> None:
    term, _ = _term(cursor)
    cursor.end()
    with table.edit_spec() as spec:
        spec.remove(term)


def _replace_field(table: Table, cursor: Cursor) -> None:
    old = cursor.until("WITH").strip()
    cursor.expect("WITH")
    new, name = _term(cursor)
    cursor.end()
    with table.edit_spec() as spec:
        spec.remove(_plain(old))
        spec.add(new, name)


def _term(cursor: Cursor) -> tuple[str, str | None]:
    term = cursor.until("AS", ";").strip()
    if not term:
        raise cursor.error("a column or a transform")
    name = cursor.name()[-1] if cursor.accept("AS") else None
    return _plain(term), name


def _plain(term: str) -> str:
    return term.replace("`", "")


def _write(table: Table, cursor: Cursor) -> None:
    """WRITE [DISTRIBUTED BY PARTITION] [LOCALLY] [ORDERED BY …] | UNORDERED."""
    mode: str | None = None
    keys: list[str] = []
    ordered = True
    if cursor.accept("DISTRIBUTED", "BY", "PARTITION"):
        mode = "hash"
    if cursor.accept("UNORDERED"):
        mode = mode or "none"
    elif (locally := cursor.accept("LOCALLY")) or mode is None or _comes(cursor, "ORDERED"):
        cursor.expect("ORDERED", "BY")
        mode = mode or (None if locally else "range")
        in_brackets = cursor.accept("(")
        keys = [_plain(key.strip()) for key in cursor.listed(";")]
        if in_brackets:
            cursor.expect(")")
    else:
        ordered = False
    cursor.end()
    with table.transaction() as changes:
        if ordered:
            with changes.edit_sort() as sort:
                sort.by(*keys)
        if mode is not None:
            changes.set_properties({DISTRIBUTION: mode})


def _comes(cursor: Cursor, word: str) -> bool:
    return cursor.next is not None and cursor.next.says(word)


def _set_identifiers(table: Table, cursor: Cursor) -> None:
    names = _names(cursor)
    with table.edit_schema() as schema:
        schema.set_identifier_fields(own_path(table.schema, name) for name in names)


def _drop_identifiers(table: Table, cursor: Cursor) -> None:
    gone = {".".join(own_path(table.schema, name)) for name in _names(cursor)}
    have = {*identifier_names(table.schema)}
    for name in sorted(gone - have):
        raise InvalidInput(f"{name!r} is no identifier field of table {table.name}")
    with table.edit_schema() as schema:
        schema.set_identifier_fields(sorted(have - gone))


def _names(cursor: Cursor) -> list[list[str]]:
    names = [cursor.name()]
    while cursor.accept(","):
        names.append(cursor.name())
    cursor.end()
    return names


# --- branches and tags -------------------------------------------------------------------------


def _ref(kind: str, *, create: bool, replace: bool) -> Callable[[Table, Cursor], None]:
    def change(table: Table, cursor: Cursor) -> None:
        lenient = cursor.accept("IF", "NOT", "EXISTS")
        name = cursor.name()[0]
        at = cursor.whole_number() if cursor.accept("AS", "OF", "VERSION") else None
        kept = _retention(cursor, kind)
        cursor.end()
        if replace and (name in table.refs or not create):
            _point(table, kind, name, at, kept)
        else:
            try:
                _make(table, kind, name, at, kept)
            except AlreadyExists:
                if not lenient:
                    raise

    return change


def _make(table: Table, kind: str, name: str, at: int | None, kept: Retention) -> None:
    if kind == "branch":
        table.create_branch(name, at=at, retention=kept)
    else:
        table.create_tag(name, at=at, max_ref_age_ms=kept.max_ref_age_ms)


def _point(table: Table, kind: str, name: str, at: int | None, kept: Retention) -> None:
    to = table.metadata.current_snapshot_id if at is None else at
    if to is None:
        raise InvalidInput(f"table {table.name} has no snapshot for {name!r} to point at")
    move: Any = refs.replace_branch if kind == "branch" else refs.replace_tag
    with table.transaction() as changes:
        changes.update_metadata(*move(changes.metadata, table.files.page, name, at=to))
        if kept != Retention():
            changes.update_metadata(*refs.set_retention(changes.metadata, name, kept))


def _retention(cursor: Cursor, kind: str) -> Retention:
    found: dict[str, int] = {}
    if cursor.accept("RETAIN"):
        found["max_ref_age_ms"] = _age(cursor)
    if kind == "branch" and cursor.accept("WITH", "SNAPSHOT", "RETENTION"):
        number = cursor.number()
        if cursor.accept("SNAPSHOTS"):
            found["min_snapshots_to_keep"] = number
            if cursor.next is not None and cursor.next.kind == "number":
                found["max_snapshot_age_ms"] = _age(cursor)
        else:
            found["max_snapshot_age_ms"] = number * _unit(cursor)
    return Retention(**found)


def _age(cursor: Cursor) -> int:
    return cursor.number() * _unit(cursor)


def _unit(cursor: Cursor) -> int:
    for word, milliseconds in _UNIT_MS.items():
        if cursor.accept(word) or cursor.accept(f"{word}S"):
            return milliseconds
    raise cursor.error("DAYS, HOURS or MINUTES")


def _drop_ref(kind: str) -> Callable[[Table, Cursor], None]:
    def change(table: Table, cursor: Cursor) -> None:
        lenient = cursor.accept("IF", "EXISTS")
        name = cursor.name()[0]
        cursor.end()
        try:
            table.remove_branch(name) if kind == "branch" else table.remove_tag(name)
        except NotFound:
            if not lenient:
                raise

    return change


_Change = Callable[[Table, Cursor], None]


def _ref_changes(kind: str) -> list[tuple[tuple[str, ...], _Change]]:
    word = kind.upper()
    return [
        (("CREATE", "OR", "REPLACE", word), _ref(kind, create=True, replace=True)),
        (("CREATE", word), _ref(kind, create=True, replace=False)),
        (("REPLACE", word), _ref(kind, create=False, replace=True)),
        (("DROP", word), _drop_ref(kind)),
    ]


_CHANGES: Final[Sequence[tuple[tuple[str, ...], _Change]]] = (
    (("ADD", "PARTITION", "FIELD"), _add_field),
    (("DROP", "PARTITION", "FIELD"), _drop_field),
    (("REPLACE", "PARTITION", "FIELD"), _replace_field),
    (("WRITE",), _write),
    (("SET", "IDENTIFIER", "FIELDS"), _set_identifiers),
    (("DROP", "IDENTIFIER", "FIELDS"), _drop_identifiers),
    *_ref_changes("branch"),
    *_ref_changes("tag"),
)
