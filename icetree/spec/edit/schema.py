"""Schema evolution: edits of a table's current schema, as updates of its metadata.

Edits work on the schema's JSON, so what this version does not know of it survives. Ids never
change and are never used twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from pyiceberg.types import IcebergType, NestedField, StructType

from icetree.errors import InvalidInput
from icetree.spec.edit import identifiers, union
from icetree.spec.edit.new_columns import (
    Ids,
    SchemaLike,
    TypeLike,
    as_struct,
    as_type,
    check_name,
    field_json,
    require_version,
    type_json,
)
from icetree.spec.edit.promote import changed_partitioning, ways_out, widens
from icetree.spec.entry.metrics import COLUMN_PREFIX
from icetree.spec.metadata.column_uses import current_partitioning, uses
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import (
    AddSchema,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    Update,
)
from icetree.spec.schema.default_values import default_json, widened_default
from icetree.spec.schema.tree import Path, Place, dotted, find, under, walk
from icetree.spec.schema.types import parse_type
from icetree.spec.spelled import spelled
from icetree.spec.texts import storable


@spelled
class SchemaEdit:
    """Edits of the current schema, one after another; each sees those before it.

    A column is named by its path: "zip", "address.zip", "tags.element.x", "prices.value.net";
    a tuple of names where a name has a dot. An edit that is refused (InvalidInput) changes
    nothing.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._version = metadata.format_version
        self._schema: dict[str, Any] = deepcopy(metadata.schema_json())
        self._ids = Ids(metadata.last_column_id)

    def __repr__(self) -> str:
        return f"SchemaEdit(columns={len(self._schema['fields'])})"

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as edited so far, as JSON."""
        return deepcopy(self._schema)

    def updates(self) -> tuple[Update, ...]:
        """Return what makes the edited schema the table's current one; nothing if it is so."""
        before = self._metadata.schema_json()
        if self._schema == before:
            return ()
        body = {name: value for name, value in self._schema.items() if name != "schema-id"}
        return (AddSchema(schema=deepcopy(body)), SetCurrentSchema(), *self._property_updates())

    def add(
        self,
        name: Path,
        type: TypeLike,
        *,
        doc: str | None = None,
        required: bool = False,
        default: object = None,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> SchemaEdit:
        """Add a column, last in its struct unless told otherwise.

        Rows written before have the default, and so have later ones that say nothing.
        """
        own, full = _last(name), dotted(name)
        fields, parent = self._fields_of(name)
        check_name(own, (each["name"] for each in fields), where=parent)
        self._require_free(full)
        meant = as_type(type)
        require_version(meant, self._version, where=f"column {full!r}")
        value = self._default(default, meant, full)
        if required and value is None:
            raise InvalidInput(
                f"column {full!r} cannot be added as required: rows written before have no value "
                "of it; give it a default, or add it as optional"
            )
        _require_whole(meant, value, full)
        at = _position(fields, own, first=first, after=after, before=before, default=len(fields))
        doc = None if doc is None else storable(doc, what="doc")
        column = NestedField(field_id=0, name=own, field_type=meant, required=required, doc=doc)
        new = field_json(column, self._ids.next(), self._ids, where=full)
        _put(new, "initial-default", value)
        _put(new, "write-default", value)
        fields.insert(at, new)
        return self

    def drop(self, name: Path) -> SchemaEdit:
        """Drop a column; data files keep its values, unseen."""
        place = self._field(name, "dropped")
        gone = {place.id, *(each.id for each in under(place))}
        for use in uses(self._metadata, self._schema, gone):
            raise InvalidInput(f"column {place.name!r} cannot be dropped: {use}")
        assert place.siblings is not None
        if place.parents and len(place.siblings) == 1:
            raise InvalidInput(
                f"column {place.name!r} is the only field of {place.parents[-1].name!r}: "
                "drop that one instead"
            )
        place.siblings.remove(place.holder)
        return self

    def rename(self, name: Path, to: str) -> SchemaEdit:
        """Give a column another name; `to` is its own name, without those around it."""
        place = self._field(name, "renamed")
        if "." in storable(to, what="to"):
            raise InvalidInput(
                f"{to!r} is a path: a column is renamed where it is, so give its own name alone"
            )
        if to == place.own_name:
            return self
        assert place.siblings is not None
        others = [each["name"] for each in place.siblings if each is not place.holder]
        parent = place.parents[-1].name if place.parents else ""
        check_name(to, others, where=parent)
        self._require_free(f"{parent}.{to}" if parent else to, id=place.id)
        place.holder["name"] = to
        return self

    def move_first(self, name: Path) -> SchemaEdit:
        """Move a column to the front of its struct."""
        return self._move(name, first=True)

    def move_after(self, name: Path, after: str) -> SchemaEdit:
        """Move a column behind another one of its struct."""
        return self._move(name, after=after)

    def move_before(self, name: Path, before: str) -> SchemaEdit:
        """Move a column in front of another one of its struct."""
        return self._move(name, before=before)

    def make_optional(self, name: Path) -> SchemaEdit:
        """Let a column be null."""
        place = self._column(name, "made optional")
        within = {place.id, *(each.id for each in under(place))}
        if not within.isdisjoint(self._schema.get("identifier-field-ids", ())):
            raise InvalidInput(
                f"column {place.name!r} cannot be made optional: it is or holds an identifier "
                "field; set other identifier fields first"
            )
        place.set_required(False)
        return self

    def make_required(self, name: Path, *, allow_incompatible: bool = False) -> SchemaEdit:
        """Forbid nulls in a column, which only its owner can know to be safe."""
        place = self._column(name, "made required")
        if not place.required and not allow_incompatible:
            raise InvalidInput(
                f"column {place.name!r} is optional, and rows may have no value of it; "
                "if you know that all have, pass allow_incompatible=True"
            )
        place.set_required(True)
        return self

    def widen(self, name: Path, type: TypeLike) -> SchemaEdit:
        """Change a column's type to one that holds every value of the old one."""
        place = self._column(name, "retyped")
        old, new = parse_type(place.type), as_type(type)
        if old == new:
            return self
        require_version(new, self._version, where=f"column {place.name!r}")
        refusal = f"column {place.name!r} cannot change from {old} to {new}"
        if not widens(old, new, version=self._version):
            raise InvalidInput(f"{refusal}: {ways_out(old, version=self._version)}")
        changed = changed_partitioning(self._metadata, place.id, old, new)
        if changed is not None:
            raise InvalidInput(f"{refusal}: {changed}")
        place.set_type(type_json(new, self._ids, where=place.name))
        if place.part is None:
            for name in ("initial-default", "write-default"):
                if name in place.holder:
                    place.holder[name] = widened_default(place.holder[name], old, new)
        return self

    def set_doc(self, name: Path, doc: str | None) -> SchemaEdit:
        """Set or remove what a column's documentation says."""
        place = self._field(name, "documented")
        _put(place.holder, "doc", None if doc is None else storable(doc, what="doc"))
        return self

    def set_default(self, name: Path, default: object) -> SchemaEdit:
        """Set what later rows have that say nothing; None removes it. Rows there are stay."""
        place = self._field(name, "given a default")
        value = self._default(default, parse_type(place.type), place.name)
        _put(place.holder, "write-default", value)
        return self

    def set_identifier_fields(self, columns: Iterable[Path]) -> SchemaEdit:
        """Choose the columns that identify a row; none to have none."""
        if not isinstance(columns, Iterable):
            raise InvalidInput(f"identifier fields {columns!r}: give a list of columns")
        ids = sorted({identifiers.required_id(find(self._schema, each)) for each in columns})
        if ids or "identifier-field-ids" in self._schema:
            self._schema["identifier-field-ids"] = ids
        return self

    def union_by_name(self, schema: SchemaLike) -> SchemaEdit:
        """Make the schema wide enough for rows of another, matching columns by name.

        Missing columns are added, as optional; narrower types are widened, wider ones stay; what
        the other has optional becomes optional. InvalidInput where types cannot meet.
        """
        trial = SchemaEdit(self._metadata)
        trial._schema, trial._ids = deepcopy(self._schema), Ids(self._ids.last)
        union.merge(trial, as_struct(schema), version=self._version)
        self._schema, self._ids = trial._schema, trial._ids
        return self

    def _column(self, path: Path, done: str) -> Place:
        place = find(self._schema, path)
        if place.in_key:
            raise InvalidInput(
                f"{place.name!r} cannot be {done}: keys of a map never change; "
                "add a new map column instead"
            )
        return place

    def _field(self, path: Path, done: str) -> Place:
        place = self._column(path, done)
        if place.part is not None:
            raise InvalidInput(
                f"{place.name!r} cannot be {done}: it is the {place.part} of "
                f"{place.parents[-1].name!r}, not a field of a struct"
            )
        return place

    def _fields_of(self, path: Path) -> tuple[list[dict[str, Any]], str]:
        """Return the fields that a new column joins, and the full name of their struct."""
        parent: Path = path.rpartition(".")[0] if isinstance(path, str) else path[:-1]
        if not parent:
            return self._schema["fields"], ""
        place = self._column(parent, "extended")
        if not place.is_struct:
            inner = [each for each in under(place) if each.part in {"element", "value"}]
            if not inner or not inner[0].is_struct:
                raise InvalidInput(
                    f"column {dotted(path)!r} cannot be added: {place.name!r} is no struct. "
                    "A column whose name has a dot is given as a tuple of names"
                )
            place = inner[0]
        return place.type["fields"], place.name

    def _require_free(self, full: str, *, id: int | None = None) -> None:
        for place in walk(self._schema):
            if place.name == full and place.id != id:
                raise InvalidInput(f"there is a column {full!r} already")
        for each in current_partitioning(self._metadata):
            if each.name == full and not (each.is_identity and each.source_id == id):
                raise InvalidInput(
                    f"column {full!r} would have the name of a partition field "
                    f"({each.transform}); rename or remove that first"
                )

    def _default(self, value: Any, type: IcebergType, full: str) -> Any:
        if value is not None and self._version < 3:
            raise InvalidInput(
                f"column {full!r}: defaults need format version 3, this table has "
                f"{self._version}; upgrade it first"
            )
        return default_json(value, type, where=f"column {full!r}")

    def _move(self, path: Path, **where: Any) -> SchemaEdit:
        place = self._field(path, "moved")
        assert place.siblings is not None
        others = [each for each in place.siblings if each is not place.holder]
        at = _position(others, place.own_name, **where)
        place.siblings[:] = [*others[:at], place.holder, *others[at:]]
        return self

    def _property_updates(self) -> Iterable[Update]:
        """Let settings that name a column follow it."""
        properties = self._metadata.properties
        then = {place.id: place.name for place in walk(self._schema)}
        moved: dict[str, str] = {}
        gone: list[str] = []
        for place in walk(self._metadata.schema_json()):
            key, now = COLUMN_PREFIX + place.name, then.get(place.id)
            if key in properties and now != place.name:
                gone.append(key)
                if now is not None:
                    moved[COLUMN_PREFIX + now] = properties[key]
        if gone:
            yield RemoveProperties(removals=tuple(gone))
        if moved:
            yield SetProperties(updates=moved)


def _last(path: Path) -> str:
    dotted(path)
    return path.rpartition(".")[2] if isinstance(path, str) else path[-1]


def _put(holder: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        holder.pop(name, None)
    else:
        holder[name] = value


def _position(
    fields: list[dict[str, Any]],
    name: str,
    *,
    first: bool = False,
    after: str | None = None,
    before: str | None = None,
    default: int = 0,
) -> int:
    """Return where among the fields a column belongs."""
    if [first, after is not None, before is not None].count(True) > 1:
        raise InvalidInput(f"column {name!r}: choose one of first, after and before")
    other = after if after is not None else before
    if other is None:
        return 0 if first else default
    own = storable(other, what="its neighbour").rpartition(".")[2]
    for wanted in (other, own):
        for at, each in enumerate(fields):
            if each["name"] == wanted:
                return at if after is None else at + 1
    raise InvalidInput(
        f"column {name!r} cannot be placed next to {other!r}: there is no other such column "
        "in its struct"
    )


def _require_whole(type: IcebergType, value: Any, full: str) -> None:
    """Refuse a struct default that leaves a required field of the struct without a value."""
    if isinstance(type, StructType) and value is not None:
        for each in type.fields:
            if each.required and each.initial_default is None:
                raise InvalidInput(
                    f"column {full!r}: its default is a struct, but field {each.name!r} is "
                    "required and has no default of its own"
                )
