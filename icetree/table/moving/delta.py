"""Delta tables, as their log has them: columns, files with partition values, and deleted rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from icetree.errors import CorruptTable, IcetreeError, Unsupported
from icetree.spec.location import canonical, prefix_of, scheme_of
from icetree.table.moving.contents import Contents

#: What readers must know of, and we do; Arrow reads a file's narrower numbers as wider ones.
_KNOWN: Final = frozenset(
    {
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
#: No `Exception`, as it comes from another language.
_PANIC: Final = "PanicException"
_COLUMN_MAPPING: Final = "delta.columnMapping.mode"


def delta_at(place: str) -> Contents:
    """Return the newest version of a Delta table; Unsupported for what cannot be told in full."""
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise Unsupported(
            f"{place} is a Delta table, which the package deltalake reads: pip install "
            "'icetree[delta]'"
        ) from None
    with _plainly(place):
        return _told(DeltaTable(place), place)


def _told(table: Any, place: str) -> Contents:
    _require_known(table, place)
    metadata = table.metadata()
    actions = pa.table(table.get_add_actions())
    files = [_file(path, place) for path in actions["path"].to_pylist()]
    names = tuple(metadata.partition_columns)
    parts = actions["partition"].combine_chunks() if names else None
    columns = {} if parts is None else {name: parts.field(name) for name in names}
    return Contents(
        schema=pa.schema(table.schema().to_arrow()),
        partition_by=names,
        files={
            file: {name: values[at] for name, values in columns.items()}
            for at, file in enumerate(files)
        },
        vectors=_vectors(table, files, place),
    )


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Say in our words what a log is refused for; its reader even panics at some."""
    try:
        yield
    except IcetreeError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == _PANIC:
            raise CorruptTable(place, f"it is no Delta table to be read: {error}") from None
        raise


def _require_known(table: Any, place: str) -> None:
    protocol, configuration = table.protocol(), table.metadata().configuration
    unknown = sorted({*(protocol.reader_features or ())} - _KNOWN - {"columnMapping"})
    if unknown:
        raise Unsupported(
            f"{place} needs readers that know of {', '.join(unknown)}: write it anew without, or "
            "append its rows with an engine"
        )
    mode = configuration.get(_COLUMN_MAPPING, "none")
    if mode != "none":
        raise Unsupported(
            f"{place} has its columns mapped ({_COLUMN_MAPPING} is {mode}), under names that its "
            "files alone know: write it anew without, or append its rows with an engine"
        )


def _file(path: str, place: str) -> str:
    """Return where a file of the log is; names in it are encoded as in a URL."""
    path = unquote(path)
    return path if scheme_of(path) else prefix_of(place) + path


def _vectors(table: Any, files: list[str], place: str) -> dict[str, BitMap64]:
    """Return the rows that deletion vectors hide, by file."""
    known = {canonical(file, place): file for file in files}
    found = {}
    for batch in table.deletion_vectors():
        rows = pa.record_batch(batch)
        for location, kept in zip(rows["filepath"], rows["selection_vector"], strict=True):
            told = location.as_py()
            file = known.get(canonical(unquote(told), place)) or known.get(canonical(told, place))
            if file is None:
                raise CorruptTable(place, f"a deletion vector is of {told}, which is no file of it")
            mask = kept.values.to_numpy(zero_copy_only=False)
            found[file] = BitMap64(np.flatnonzero(~mask).tolist())
    return found
