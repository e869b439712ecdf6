"""What a snapshot's summary tells beside the one before it."""

from __future__ import annotations

from icetree.spec.entry import entry
from icetree.tree.changes import Operation
from icetree.tree.summary import summarise
from tests.tree.planning import SHAPE, one


def test_a_total_that_was_told_too_low_is_never_told_as_less_than_nothing() -> None:
    """Iceberg Java counts no bytes of files in manifests that it is handed, and leaves such totals out."""
    removed, none = (entry.to_table(files, SHAPE) for files in ([one("a")], []))
    previous = {"total-data-files": "5", "total-files-size": "0"}

    def after(previous: dict[str, str]) -> dict[str, str]:
        return summarise(
            Operation.DELETE, none, removed, previous, manifests={}, changed_partitions=None
        )

    told = after(previous)
    assert told["total-data-files"] == "4"
    assert "total-files-size" not in told
    assert "total-files-size" not in after(told)
