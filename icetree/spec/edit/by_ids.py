"""Layouts as clients of older format versions give them: transforms of columns by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as with_fields
from pyiceberg.schema import Schema

from icetree.errors import InvalidInput
from icetree.spec.edit import identifiers
from icetree.spec.edit.new_columns import Ids, struct_json
from icetree.spec.edit.promote import widens
from icetree.spec.edit.terms import require_taken
from icetree.spec.location import leads_up, no_name
from icetree.spec.metadata.layout import (
    FIRST_PARTITION_ID,
    UNSORTED,
    ExprField,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
)
from icetree.spec.metadata.metadata import TableMetadata, new_table
from icetree.spec.metadata.update import AddExpression, AddPartitionSpec, RenameExpressions, Update
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema import columns
from icetree.spec.schema.expressions import Expression, is_malformed
from icetree.spec.schema.tree import Place, walk
from icetree.spec.schema.types import parse_type

#: In place of a partition field's id: one that is to be given.
UNNUMBERED = 0


def numbered_anew(
    schema: Mapping[str, Any], fields: Sequence[PartitionField], keys: Sequence[SortField]
) -> tuple[dict[str, Any], tuple[PartitionField, ...], tuple[SortField, ...]]:
    """Return a schema with ids from 1, and a layout by these; InvalidInput for what is none."""
    columns.require_shallow(schema)
    found: Schema = columns.parsed(schema)
    ids = Ids(0)
    made = struct_json(found.as_struct(), ids)

    def now(sources: Sequence[int]) -> int:
        for id in sources if len(sources) == 1 else ():
            if id in ids.renumbered:
                return ids.renumbered[id]
        raise InvalidInput(f"the schema has no single column with id {[*sources]}")

    if found.identifier_field_ids:
        places = {place.id: place for place in walk(made)}
        chosen = (places[now([id])] for id in found.identifier_field_ids)
        made["identifier-field-ids"] = sorted(identifiers.required_id(each) for each in chosen)
    return (
        {**made, "schema-id": 0},
        tuple(
            with_fields(each, source_id=now(each.sources), field_id=FIRST_PARTITION_ID + at)
            for at, each in enumerate(fields)
        ),
        tuple(with_fields(each, source_id=now(each.sources)) for each in keys),
    )


def metadata_by_ids(
    schema: Mapping[str, Any],
    *,
    fields: Sequence[PartitionField],
    keys: Sequence[SortField],
    location: str,
    uuid: str,
    at_ms: int,
    properties: Mapping[str, str],
) -> TableMetadata:
    """Return the metadata of a new, empty v4 table whose columns have these ids; InvalidInput."""
    columns.require_room(columns.column_ids(schema))
    columns.parsed(schema)
    require_sound(schema, fields, keys)
    metadata = new_table(
        table_uuid=uuid,
        location=location,
        schema={**schema, "schema-id": 0},
        at_ms=at_ms,
        spec=PartitionSpec(spec_id=0, fields=_with_ids(fields, FIRST_PARTITION_ID - 1)),
        sort_order=SortOrder(order_id=1, fields=tuple(keys)) if keys else UNSORTED,
        properties=properties,
    )
    if leads_up(location):
        raise InvalidInput(no_name(location))
    if (broken := broken_rule(metadata)) is not None:
        raise InvalidInput(f"such a table could not be read again: {broken}")
    return metadata


def _with_ids(fields: Sequence[PartitionField], last: int) -> tuple[PartitionField, ...]:
    last = max([last, *(each.field_id for each in fields)])
    found = []
    for each in fields:
        if each.field_id == UNNUMBERED:
            last += 1
            each = with_fields(each, field_id=last)
        found.append(each)
    return tuple(found)


def require_sound(
    schema: Mapping[str, Any], fields: Sequence[PartitionField], keys: Sequence[SortField]
) -> None:
    """Refuse transforms that columns of a schema cannot take, and names that columns have."""
    places = {place.id: place for place in walk(schema)}
    names = {place.name: place.id for place in places.values()}
    every: list[tuple[str, PartitionField | SortField]] = [("partition", each) for each in fields]
    every += [("sort", each) for each in keys]
    for done, each in every:
        if is_malformed(each.transform):
            raise InvalidInput(f"{each.transform!r} is no transform")
        for id in each.sources:
            if id not in places:
                raise InvalidInput(f"cannot {done} by column {id}: the schema has none of that id")
            if each.transform != "void":
                require_taken(each.transform, places[id], each.transform, done)
    taken: set[str] = set()
    for field in fields:
        is_own = field.transform == "identity" and names.get(field.name) in field.sources
        if not field.name.strip() or field.name in taken or (field.name in names and not is_own):
            raise InvalidInput(
                f"a partition field cannot be named {field.name!r}: the name is empty, or another "
                "field or column has it"
            )
        taken.add(field.name)


class Expressions:
    """Partition fields of specs to be, as expressions: those there are, and new ones."""

    def __init__(self, metadata: TableMetadata, *, last_column_id: int) -> None:
        self._known = list(metadata.expressions)
        self._last_column_id = last_column_id
        self._last_partition_id = metadata.last_partition_id

    def updates(self, fields: Sequence[PartitionField]) -> tuple[Update, ...]:
        """Return what adds a spec of these fields."""
        made: list[Update] = []
        chosen: list[int] = []
        names: dict[int, str] = {}
        for field in fields:
            found = self._found(field, chosen)
            if found is None:
                found = self._new(field)
                self._yield_name(field.name, to=found.expr_id, names=names)
                self._known.append(found)
                made.append(AddExpression(expression=found))
            elif found.name != field.name:
                self._yield_name(field.name, to=found.expr_id, names=names)
                self._rename(found.expr_id, field.name)
                names[found.expr_id] = field.name
            chosen.append(found.expr_id)
        spec = PartitionSpec(spec_id=0, fields=tuple(ExprField(expr_id=id) for id in chosen))
        renamed: list[Update] = [RenameExpressions(names=names)] if names else []
        return (*renamed, *made, AddPartitionSpec(spec=spec))

    def _found(self, field: PartitionField, chosen: Sequence[int]) -> Expression | None:
        for each in self._known:
            same = (each.source_ids, each.transform) == (field.sources, field.transform)
            id_fits = field.field_id in (UNNUMBERED, each.partition_field_id)
            if same and id_fits and each.expr_id not in chosen:
                return each
        return None

    def _new(self, field: PartitionField) -> Expression:
        self._last_column_id += 1
        given = field.field_id
        if given == UNNUMBERED:
            given = self._last_partition_id + 1
        self._last_partition_id = max(self._last_partition_id, given)
        return Expression(
            expr_id=self._last_column_id,
            source_ids=field.sources,
            transform=field.transform,
            name=field.name,
            partition_field_id=given,
        )

    def _yield_name(self, name: str, *, to: int, names: dict[int, str]) -> None:
        """Let another expression give up the name, for names are unique in a table."""
        for each in self._known:
            if each.name == name and each.expr_id != to:
                other = f"{name}_{each.partition_field_id or each.expr_id}"
                self._rename(each.expr_id, other)
                names[each.expr_id] = other

    def _rename(self, expr_id: int, name: str) -> None:
        self._known = [
            replace(each, name=name) if each.expr_id == expr_id else each for each in self._known
        ]


def require_follows(before: Mapping[str, Any], after: Mapping[str, Any], *, version: int) -> None:
    """Refuse a schema that files written with another could not be read by."""
    old = {place.id: place for place in walk(before)}
    for place in walk(after):
        was = old.get(place.id)
        has_default = place.part is None and place.holder.get("initial-default") is not None
        if was is None:
            is_own = place.part is None and all(each.id in old for each in place.parents)
            if is_own and place.required and not has_default:
                raise InvalidInput(
                    f"column {place.name!r} cannot be required: rows written before have no value of it"
                )
            continue
        if place.required and not was.required:
            raise InvalidInput(
                f"column {place.name!r} cannot become required: rows may have no value of it"
            )
        same = _kind(was) == _kind(place)
        if not same and not _widened(was, place, version):
            raise InvalidInput(
                f"column {place.name!r} was a {_kind(was)} and cannot become a {_kind(place)}"
            )


def _kind(place: Place) -> str:
    return place.type if isinstance(place.type, str) else str(place.type["type"])


def _widened(was: Place, place: Place, version: int) -> bool:
    if not (isinstance(was.type, str) and isinstance(place.type, str)):
        return False
    return widens(parse_type(was.type), parse_type(place.type), version=version)
