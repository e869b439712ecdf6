"""A client's updates as ours: expressions for transforms, ids resolved, every place confined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.serve.access.places import inside, is_same, require_confined
from icetree.serve.commit import actions as told
from icetree.spec.edit.by_ids import Expressions, require_follows, require_sound
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.metadata import update
from icetree.spec.metadata.layout import PartitionSpec, SortOrder
from icetree.spec.metadata.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from icetree.spec.metadata.snapshot import MAIN, Ref
from icetree.spec.schema import columns
from icetree.table.export.places import EXPORTS

#: Those that are carried out first: ids of columns come before those of expressions.
_FIRST: Final = (told.AddSchema, told.SetCurrentSchema)
#: A property that Iceberg's users set, and that no table stores.
_VERSION: Final = "format-version"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSnapshot:
    """A snapshot that a client adds, and the branch that is to have it; none where it is staged."""

    snapshot: Mapping[str, Any]
    branch: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """What a request comes to, in the order in which it is carried out."""

    #: What was said before the first snapshot.
    before: tuple[update.Update, ...]
    snapshots: tuple[NewSnapshot, ...]
    #: What was said after it, and refs that point to new snapshots.
    after: tuple[update.Update, ...]


def translated(asked: Sequence[told.AnyAction], metadata: TableMetadata) -> Translated:
    """Return a client's updates of a table as ours; InvalidInput for what may not be.

    What a client says after a snapshot is of the table with it: so snapshots expire after the head
    has moved, and a branch that is made anew is taken away before.
    """
    new = [each for each in asked if isinstance(each, told.AddSnapshot)]
    ids = {each.snapshot.get("snapshot-id") for each in new}
    moved = {
        each.snapshot_id: each.ref_name
        for each in asked
        if isinstance(each, told.SetSnapshotRef) and each.type == "branch"
    }
    before: list[told.AnyAction] = []
    after: list[told.AnyAction] = []
    part = before
    for each in asked:
        if isinstance(each, told.AddSnapshot):
            part = after
        elif isinstance(each, told.SetSnapshotRef) and each.snapshot_id in ids:
            after.append(each)
        else:
            part.append(each)
    _require_schemas(asked, metadata)
    reading = _Reading(metadata, asked)
    return Translated(
        before=reading.all_updates(before),
        snapshots=tuple(
            NewSnapshot(
                snapshot=each.snapshot, branch=moved.get(each.snapshot.get("snapshot-id", 0))
            )
            for each in new
        ),
        after=reading.all_updates(after),
    )


def _require_schemas(asked: Sequence[told.AnyAction], metadata: TableMetadata) -> None:
    """Refuse a new current schema that what is in the table could not be read by."""
    gone = any(isinstance(each, told.RemoveSnapshotRef) and each.ref_name == MAIN for each in asked)
    if metadata.current_snapshot_id is None or gone:
        return
    before = metadata.schema_json()
    for each in asked:
        if isinstance(each, told.AddSchema):
            columns.column_ids(each.schema)
            columns.parsed(each.schema)
            require_follows(before, each.schema, version=metadata.format_version)
        elif isinstance(each, told.SetCurrentSchema) and each.schema_id != update.LAST_ADDED:
            known = {schema["schema-id"]: schema for schema in metadata.schemas}
            if each.schema_id in known:
                require_follows(before, known[each.schema_id], version=metadata.format_version)


#: Updates that say the same in our words.
_ALIKE: Final[Mapping[type[Any], Callable[[Any], update.Update]]] = {
    told.AddSchema: lambda a: update.AddSchema(schema=_plain(a.schema)),
    told.SetCurrentSchema: lambda a: update.SetCurrentSchema(schema_id=a.schema_id),
    told.SetDefaultSpec: lambda a: update.SetDefaultSpec(spec_id=a.spec_id),
    told.SetDefaultSortOrder: lambda a: update.SetDefaultSortOrder(sort_order_id=a.sort_order_id),
    told.RemoveSnapshots: lambda a: update.ExpireSnapshots(snapshot_ids=frozenset(a.snapshot_ids)),
    told.AddEncryptionKey: lambda a: update.AddEncryptionKey(encryption_key=a.encryption_key),
    told.RemoveEncryptionKey: lambda a: update.RemoveEncryptionKey(key_id=a.key_id),
    told.RemoveSchemas: lambda a: update.RemoveSchemas(schema_ids=tuple(a.schema_ids)),
    told.RemovePartitionSpecs: lambda a: update.RemovePartitionSpecs(spec_ids=tuple(a.spec_ids)),
    told.AssignUUID: lambda a: update.AssignUUID(uuid=a.uuid),
    told.RemoveProperties: lambda a: update.RemoveProperties(removals=tuple(a.removals)),
    told.RemoveStatistics: lambda a: update.RemoveStatistics(snapshot_id=a.snapshot_id),
    told.RemovePartitionStatistics: lambda a: update.RemovePartitionStatistics(
        snapshot_id=a.snapshot_id
    ),
}


class _Reading:
    """Turns one update after another; specs that come later see the expressions of those before."""

    def __init__(self, metadata: TableMetadata, asked: Sequence[told.AnyAction]) -> None:
        self._metadata = metadata
        schemas = [each.schema for each in asked if isinstance(each, told.AddSchema)]
        self._schema = schemas[-1] if schemas else metadata.schema_json()
        ids = (id for schema in schemas for id in columns.column_ids(schema))
        last = max([metadata.last_column_id, *ids])
        self._expressions = Expressions(metadata, last_column_id=last)

    def all_updates(self, asked: Sequence[told.AnyAction]) -> tuple[update.Update, ...]:
        """Return what updates come to, in the order in which they can be carried out."""
        ordered = [
            *(each for each in asked if isinstance(each, _FIRST)),
            *(each for each in asked if not isinstance(each, _FIRST)),
        ]
        return tuple(made for each in ordered for made in self.updates(each))

    def updates(self, asked: told.AnyAction) -> Iterator[update.Update]:
        """Yield what an update comes to, which may be nothing."""
        if type(asked) in _ALIKE:
            yield _ALIKE[type(asked)](asked)
            return
        match asked:
            case told.AddSpec(spec=spec):
                yield from self._spec(spec)
            case told.AddSortOrder(sort_order=order):
                keys = tuple(each.noun() for each in order.fields)
                require_sound(self._schema, (), keys)
                yield update.AddSortOrder(sort_order=SortOrder(order_id=0, fields=keys))
            case told.SetSnapshotRef():
                yield _ref(asked)
            case told.RemoveSnapshotRef(ref_name=name) if name in self._metadata.refs:
                yield update.RemoveSnapshotRef(ref_name=name)
            case told.UpgradeFormatVersion(format_version=version):
                yield from _upgraded(version, self._metadata)
            case _:
                yield from self._confined(asked)

    def _confined(self, asked: told.AnyAction) -> Iterator[update.Update]:
        """Yield updates that name places, none of which leads out of the table."""
        metadata = self._metadata
        match asked:
            case told.SetLocation(location=location):
                # Its files would stay where they are.
                if not is_same(location, metadata.location):
                    raise InvalidInput(f"a table stays where it is, at {metadata.location!r}")
            case told.SetProperties(updates=properties):
                require_confined(properties.items(), metadata.location)
                kept = {name: value for name, value in properties.items() if name != _VERSION}
                yield update.SetProperties(updates=kept)
            case told.SetStatistics(statistics=file):
                yield update.SetStatistics(statistics=_inside(file, metadata))
            case told.SetPartitionStatistics(partition_statistics=file):
                yield update.SetPartitionStatistics(partition_statistics=_inside(file, metadata))

    def _spec(self, spec: told.Spec) -> Iterator[update.Update]:
        fields = tuple(each.noun() for each in spec.fields)
        require_sound(self._schema, fields, ())
        if self._metadata.format_version >= FORMAT_VERSION:
            yield from self._expressions.updates(fields)
        else:
            yield update.AddPartitionSpec(spec=PartitionSpec(spec_id=0, fields=fields))


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what says nothing, so that the same one is known again."""
    found = {"type": "struct", **schema}
    if not found.get("identifier-field-ids"):
        found.pop("identifier-field-ids", None)
    return found


def _upgraded(version: int, metadata: TableMetadata) -> Iterator[update.Update]:
    """A v4 table is shown as an older one: what its clients raise it to, it is already."""
    if metadata.format_version < FORMAT_VERSION or version > FORMAT_VERSION:
        yield update.UpgradeFormatVersion(format_version=version)


def _ref(asked: told.SetSnapshotRef) -> update.SetSnapshotRef:
    ref = Ref(
        snapshot_id=asked.snapshot_id,
        type=asked.type,
        max_ref_age_ms=asked.max_ref_age_ms,
        max_snapshot_age_ms=asked.max_snapshot_age_ms,
        min_snapshots_to_keep=asked.min_snapshots_to_keep,
    )
    return update.SetSnapshotRef(ref_name=asked.ref_name, ref=ref)


def _inside(file: Any, metadata: TableMetadata) -> Any:
    found: StatisticsFile | PartitionStatisticsFile = file
    stored = inside(found.statistics_path, metadata.location, what="the statistics file")
    if stored.startswith(EXPORTS):
        raise InvalidInput(
            f"the statistics file {found.statistics_path!r} is where the server keeps what it shows "
            "clients: name one of your own"
        )
    if metadata.format_version >= FORMAT_VERSION:
        return replace(found, statistics_path=stored)
    return found
