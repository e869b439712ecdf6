"""Partition evolution: edits of a table's default spec, as updates of its metadata."""

from __future__ import annotations

from dataclasses import replace

from icetree.errors import InvalidInput
from icetree.spec.edit.terms import Term, read_term
from icetree.spec.metadata.layout import ExprField, PartitionSpec
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import (
    AddExpression,
    AddPartitionSpec,
    RenameExpressions,
    SetDefaultSpec,
    Update,
)
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.tree import walk
from icetree.spec.spelled import spelled
from icetree.spec.texts import did_you_mean, storable


@spelled
class SpecEdit:
    """Edits of the default partition spec, one after another; each sees those before it.

    Files written before stay as they are. An expression or a spec that the table has had
    before is used again. An edit that is refused (InvalidInput) changes nothing.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        if metadata.format_version < 4:
            raise InvalidInput(
                f"partitions are edited as expressions, which need format version 4; this table "
                f"has {metadata.format_version}: upgrade it first"
            )
        self._metadata = metadata
        self._schema = metadata.schema_json()
        self._known = {each.expr_id: each for each in metadata.expressions}
        self._last_column_id = metadata.last_column_id
        self._last_partition_id = metadata.last_partition_id
        _, specs = metadata.partitioning
        self._before = specs[metadata.default_spec_id]
        self._ids = list(self._before)
        self._added_times: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"SpecEdit(fields={len(self._ids)})"

    @property
    def fields(self) -> tuple[Expression, ...]:
        """The expressions of the spec as edited so far."""
        return tuple(self._known[id] for id in self._ids)

    def updates(self) -> tuple[Update, ...]:
        """Return what makes the edited spec the default one; nothing if it is so."""
        old = {each.expr_id: each for each in self._metadata.expressions}
        names = {
            id: each.name
            for id, each in self._known.items()
            if id in old and old[id].name != each.name
        }
        named: list[Update] = [RenameExpressions(names=names)] if names else []
        new: list[Update] = [
            AddExpression(expression=each)
            for id, each in self._known.items()
            if id not in old and id in self._ids
        ]
        if tuple(self._ids) == self._before:
            return tuple(named)
        fields = tuple(ExprField(expr_id=id) for id in self._ids)
        spec = PartitionSpec(spec_id=0, fields=fields)
        return (*named, *new, AddPartitionSpec(spec=spec), SetDefaultSpec())

    def add(self, by: str, name: str | None = None) -> SpecEdit:
        """Partition by a transform as well: "days(ts)", "bucket(16, id)", "region".

        Two time transforms of one column are refused where both are new, as for a new table; a
        table that has one may get another, since the files it has keep theirs. So Iceberg Java.
        """
        meant = read_term(by, self._schema)
        for each in self.fields:
            if _is(each, meant):
                raise InvalidInput(f"the table is partitioned by {by!r} already: {each.name!r}")
        if meant.is_time and meant.source_ids[0] in self._added_times:
            raise InvalidInput(
                f"{by!r} and {self._added_times[meant.source_ids[0]]!r} partition by the same "
                "time twice; the finer one is enough"
            )
        found = next((each for each in self._known.values() if _is(each, meant)), None)
        wanted = name or (meant.name if found is None else found.name)
        self._require_free(wanted, meant, by)
        if found is None:
            self._last_column_id += 1
            self._last_partition_id += 1
            found = Expression(
                expr_id=self._last_column_id,
                source_ids=meant.source_ids,
                transform=meant.transform,
                name=wanted,
                partition_field_id=self._last_partition_id,
            )
        self._yield_name(wanted, to=found.expr_id)
        self._known[found.expr_id] = replace(found, name=wanted)
        self._ids.append(found.expr_id)
        if meant.is_time:
            self._added_times[meant.source_ids[0]] = by
        return self

    def remove(self, name: str) -> SpecEdit:
        """Stop partitioning by a field, named by its name or by its transform."""
        found = self._field(name)
        self._ids.remove(found.expr_id)
        self._added_times.pop(found.source_ids[0], None)
        return self

    def rename(self, name: str, to: str) -> SpecEdit:
        """Give a partition field another name."""
        found = self._field(name)
        meant = Term(source_ids=found.source_ids, transform=found.transform, name=to)
        if to == found.name:
            return self
        self._require_free(to, meant, name)
        self._yield_name(to, to=found.expr_id)
        self._known[found.expr_id] = replace(found, name=to)
        return self

    def _field(self, field: str) -> Expression:
        names = {each.name: each for each in self.fields}
        if storable(field, what="partition field") in names:
            return names[field]
        try:
            meant = read_term(field, self._schema)
        except InvalidInput:
            meant = None
        for each in self.fields:
            if meant is not None and _is(each, meant):
                return each
        have = f"it is partitioned by {', '.join(names)}" if names else "it has no partitions"
        raise InvalidInput(
            f"the table is not partitioned by {field!r}: {have}{did_you_mean(field, names)}"
        )

    def _require_free(self, name: str, meant: Term, text: str) -> None:
        if not storable(name, what="name").strip():
            raise InvalidInput(f"the partition field of {text!r} has an empty name")
        for each in self.fields:
            if each.name == name:
                raise InvalidInput(
                    f"there is a partition field {name!r} ({each.transform}) already; "
                    "choose another name"
                )
        for place in walk(self._schema):
            is_own = meant.transform == "identity" and meant.source_ids == (place.id,)
            if place.name == name and not is_own:
                raise InvalidInput(
                    f"partition field {name!r} ({meant.transform}) would have the name of a "
                    "column; choose another name"
                )

    def _yield_name(self, name: str, *, to: int) -> None:
        """Let an expression that the spec does not use give up the name, for names are unique."""
        for id, each in self._known.items():
            if each.name == name and id != to:
                self._known[id] = replace(each, name=f"{name}_{each.partition_field_id or id}")


def _is(expression: Expression, term: Term) -> bool:
    return (expression.source_ids, expression.transform) == (term.source_ids, term.transform)
