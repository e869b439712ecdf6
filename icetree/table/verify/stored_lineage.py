"""Can rows be who they say they are: row ids and ages that data files hold themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from icetree.spec.entry.entry import Entries
from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD


def broken_lineage(
    entry: Entries, stat: Callable[[int, str], pa.Scalar | None], next_row_id: int | None
) -> Iterator[str]:
    """Yield what no row of the entry's file can say; `stat` tells what the rows come to."""

    def end(field_id: int, which: str) -> int | None:
        found = stat(field_id, which)
        return None if found is None else found.as_py()

    for field_id, what in (
        (ROW_ID_FIELD, "row id"),
        (LAST_UPDATED_SEQUENCE_NUMBER_FIELD, "last updated sequence number"),
    ):
        least = end(field_id, "lower")
        if least is not None and least < 0:
            yield f"a row has {what} {least}"
    most = end(ROW_ID_FIELD, "upper")
    if most is not None and next_row_id is not None and most >= next_row_id:
        yield f"a row has row id {most}, but the next one to give out is {next_row_id}"
    newest = end(LAST_UPDATED_SEQUENCE_NUMBER_FIELD, "upper")
    age = entry["sequence_number"][0].as_py()
    if newest is not None and age is not None and newest > age:
        yield f"a row was last updated by sequence number {newest}, above its file's, {age}"
