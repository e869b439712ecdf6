"""How a table shows itself: its facts in a notebook, its tree as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icetree.spec.notebook import facts_html, grid_html
from icetree.spec.spelled import spelled
from icetree.table.point import Point

if TYPE_CHECKING:
    from icetree.picture.shown import Tree
    from icetree.table.table import Table


@spelled
class Shown:
    """What people see of a table when they look at its handle."""

    def tree(self: Table, at: Point | None = None) -> Tree:  # type: ignore[misc]
        """Return a snapshot's root, leaves and manifest DVs, drawn; without a point, the newest's.

        A notebook shows it as SVG; `print` shows what `icetree tree` does.
        """
        # What draws takes longer to load than most commits: only who looks needs it.
        from icetree.picture.shown import Tree
        from icetree.picture.tree import picture

        shape, found = self.metadata.shape(), self.snapshot(at)
        caption = str(self.name)
        if found is not None:
            caption += f" · snapshot {found.snapshot_id} · {found.operation or 'unknown'}"
        return Tree(
            picture(
                self.files.counted_root(found, shape),
                self.files.reader(shape),
                shape,
                caption=caption,
                root_file=found.root_file if found else "root",
                list_of=found.snapshot_id if found and found.root_manifest is None else None,
            )
        )

    def _repr_html_(self: Table) -> str:  # type: ignore[misc]
        metadata, head = self.metadata, self.current_snapshot
        summary = (head.summary or {}) if head is not None else {}
        facts = {
            "format": f"v{metadata.format_version}",
            "location": self.location,
            "partitioned by": ", ".join(self.spec) or None,
            "sorted by": ", ".join(self.sort_order) or None,
            "snapshot": "none yet" if head is None else head.snapshot_id,
            "data files": summary.get("total-data-files"),
            "rows": summary.get("total-records"),
            "branches and tags": ", ".join(sorted(metadata.refs)) or None,
        }
        columns = [
            (each.name, str(each.field_type), not each.required) for each in self.schema.fields
        ]
        return facts_html(f"table {self.name}", facts) + grid_html(
            "columns", ("name", "type", "may be null"), columns
        )
