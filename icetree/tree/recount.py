"""What the list of a v1 table may leave out about manifests: told by the manifests themselves."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import MANIFESTS, Entries, Status, is_content, with_columns
from icetree.spec.fields import BY_NAME
from icetree.tree.reading import Reader, leaves_in

_FILES: Final = {status: f"{status.name.lower()}_files_count" for status in Status}
_ROWS: Final = {status: f"{status.name.lower()}_rows_count" for status in Status}
_COUNTS: Final = (*_FILES.values(), *_ROWS.values())


def with_counts(root: Entries, reader: Reader) -> Entries:
    """Return the root with every manifest counted and its writer named, reading what lacks it.

    A root in v4 must tell all counts, so this comes before the first one of an upgraded table.
    """
    lacks = pc.or_(pc.is_null(root["record_count"]), pc.is_null(root[_COUNTS[0]]))
    for name in (*_COUNTS[1:], "snapshot_id"):
        lacks = pc.or_(lacks, pc.is_null(root[name]))
    lacks = pc.and_(lacks, is_content(root, *MANIFESTS))
    rows = np.flatnonzero(lacks.to_numpy())
    if not len(rows):
        return root
    counted: dict[str, list[int]] = {name: [] for name in ("record_count", "snapshot_id", *_COUNTS)}
    for leaf in leaves_in(root.take(pa.array(rows))):
        entries = reader.leaf(leaf, columns=("status", "snapshot_id", "record_count"))
        status = entries["status"].to_numpy()
        held = entries["record_count"].to_numpy()
        counted["record_count"].append(len(status))
        counted["snapshot_id"].append(_writer(entries["snapshot_id"].to_numpy(), status))
        for each in Status:
            counted[_FILES[each]].append(int((status == each).sum()))
            counted[_ROWS[each]].append(int(held[status == each].sum()))
    at = pc.index_in(pa.array(np.arange(root.num_rows)), value_set=pa.array(rows))
    return with_columns(
        root,
        **{
            # What a list says of who wrote a manifest is sure, what its entries say is not.
            name: pc.coalesce(*(known if name != "snapshot_id" else reversed(known)))
            for name, values in counted.items()
            for known in [(pa.array(values, BY_NAME[name].type).take(at), root[name])]
        },
    )


def _writer(snapshot_ids: npt.NDArray[np.int64], status: npt.NDArray[np.int32]) -> int:
    """Return the snapshot that wrote a manifest: its own files are not EXISTING.

    Of a manifest that only carries files over, it is one of those it has them from.
    """
    own = snapshot_ids[status != Status.EXISTING]
    return int(max(own if len(own) else snapshot_ids, default=0))
