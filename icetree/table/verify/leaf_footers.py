"""Does a leaf's own footer tell the truth of its row groups: plans leave some out by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.manifest import Told
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries
from icetree.table.verify.contradicted import contradicted

_HOLDS = {"lower": pc.less_equal, "upper": pc.greater_equal}


def untrue(told: Told, entries: Entries, names: Mapping[int, str]) -> Iterator[str]:
    """Yield a sentence for each column of which a footer says what entries of the leaf contradict."""
    rows = told.bounds["record_count"].to_numpy()
    groups = pa.array(np.repeat(np.arange(len(rows)), rows))
    for name in told.bounds.column_names:
        parsed = stats.parse_column(name)
        if parsed is None:
            continue
        field_id, stat = parsed
        said, real = told.bounds[name].take(groups), entries[name]
        at = _first_beyond(stat, said, real)
        if at is not None:
            label = names.get(field_id, str(field_id))
            for rule in _sentences(label, stat, said[at], real[at]):
                yield f"its footer says of row group {groups[at]}: {rule}"
    for name, value in told.same.items():
        other = pc.index(pc.fill_null(pc.equal(entries[name], value), False), False).as_py()
        if other >= 0:
            yield f"its footer says that {name} is {value} throughout, but it has {entries[name][other]}"


def _first_beyond(stat: str, said: pa.ChunkedArray, real: pa.ChunkedArray) -> int | None:
    """Return which entry is the first that its row group's bound leaves out, None if there is none.

    A bound is told of entries that all have one. One that is NaN, as of Iceberg Java, says nothing.
    """
    is_silent = pc.is_null(said, nan_is_null=True)
    if pa.types.is_fixed_size_binary(said.type):
        said, real = said.cast(pa.binary()), real.cast(pa.binary())
    fits = pc.fill_null(_HOLDS[stat](said, real), False)
    found: int = pc.index(pc.or_(is_silent, fits), False).as_py()
    return None if found < 0 else found


def _sentences(label: str, stat: str, said: pa.Scalar, real: pa.Scalar) -> Iterator[str]:
    if not real.is_valid:
        yield f"{stat} bound of {label} is there for every entry, but one has none"
        return
    nothing = dict.fromkeys(("lower", "upper", "values", "nulls", "nans"))
    yield from contradicted(label, {stat: said}, nothing | {stat: real})
