"""Evolution verbs: edit a table's schema, partitioning, sort order and properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.edit.sort import SortEdit
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import (
    AssignUUID,
    RemoveProperties,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from icetree.spec.properties.values import properties_of
from icetree.spec.spelled import spelled
from icetree.surroundings import new_uuid


class _Edit(Protocol):
    def updates(self) -> tuple[Update, ...]: ...


E = TypeVar("E", bound=_Edit)
#: What a change gives: a table commits it at once, a transaction along with all else.
Done = TypeVar("Done")


@spelled
class Evolution(Generic[Done]):
    """What tables and transactions alike can do to metadata.

    An edit is a block: it is applied at the block's end, and not at all when the block fails.

        with table.edit_schema() as schema:
            schema.add("address.zip", "string").rename("qty", "quantity")
    """

    if TYPE_CHECKING:

        @property
        def metadata(self) -> TableMetadata: ...

        def update_metadata(self, *updates: Update) -> Done: ...

    @contextmanager
    def _edit(self, start: Callable[[TableMetadata], E]) -> Iterator[E]:
        edit = start(self.metadata)
        yield edit
        if updates := edit.updates():
            self.update_metadata(*updates)

    @contextmanager
    def edit_schema(self) -> Iterator[SchemaEdit]:
        """Add, drop, rename, reorder and widen columns; set defaults and identifier fields."""
        with self._edit(SchemaEdit) as edit:
            yield edit

    @contextmanager
    def edit_spec(self) -> Iterator[SpecEdit]:
        """Change how new files are partitioned; files already there stay as they are."""
        with self._edit(SpecEdit) as edit:
            yield edit

    @contextmanager
    def edit_sort(self) -> Iterator[SortEdit]:
        """Change the order in which new files are written."""
        with self._edit(SortEdit) as edit:
            yield edit

    def set_properties(self, properties: Mapping[str, str]) -> Done:
        """Set table properties; others stay as they are."""
        return self.update_metadata(SetProperties(updates=properties_of(properties)))

    def remove_properties(self, *names: str) -> Done:
        """Remove table properties; ones that are not there are fine."""
        return self.update_metadata(RemoveProperties(removals=names))

    def upgrade(self, format_version: int = FORMAT_VERSION) -> Done:
        """Raise the format version; only metadata.json is written.

        `Lake.upgrade_table` also tells what comes of it, and takes tables that are in no catalog.
        """
        return self.update_metadata(*upgrading(self.metadata, format_version))


def upgrading(metadata: TableMetadata, to: int = FORMAT_VERSION) -> tuple[Update, ...]:
    """Return the updates that raise a table's format version; it gets an id if it has none."""
    raised = UpgradeFormatVersion(format_version=to)
    if metadata.table_uuid is None and to > 1:
        return AssignUUID(uuid=new_uuid()), raised
    return (raised,)
