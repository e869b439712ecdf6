"""Files of rows, in any of the formats that tables have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.foreign import avro, orc, parquet_rows
from tests.foreign.columns import Field, Row, plain
from tests.foreign.dress import Dress
from tests.foreign.layout import DELETED_PATH, DELETED_ROW, LINEAGE

#: Each takes rows, the columns that a file has of them, and how it is dressed.
_WRITERS: dict[str, Callable[[list[Row], list[Field], Dress], bytes]] = {
    "parquet": parquet_rows.rows_file,
    "orc": orc.rows_file,
    "avro": avro.rows_file,
}
FORMATS = tuple(_WRITERS)
#: Where the first stripe begins.
_STRIPES = [3]

_SELF_TOLD = [
    Field(id=each.id, key=each.path, name=each.path, type=plain("long")) for each in LINEAGE
]
_POSITIONS = [
    Field(id=DELETED_PATH, key="file_path", name="file_path", type=plain("string")),
    Field(id=DELETED_ROW, key="pos", name="pos", type=plain("long")),
]


def splits(content: bytes, format: str) -> list[int] | None:
    """Return where the first row group with rows begins, or the first stripe."""
    if format != "parquet":
        return _STRIPES if format == "orc" else None
    footer = pq.read_metadata(pa.BufferReader(content))
    groups = (footer.row_group(at) for at in range(footer.num_row_groups))
    first = next(group for group in groups if group.num_rows)
    chunks = [first.column(at) for at in range(first.num_columns)]
    return [min(each.dictionary_page_offset or each.data_page_offset for each in chunks)]


def draw_format(rng: Random, formats: tuple[str, ...]) -> str:
    """Return one of the formats that a writer uses: most often the first."""
    return formats[0] if len(formats) == 1 or rng.random() < 0.6 else rng.choice(formats)


def data_file(
    rows: list[Row],
    columns: list[Field],
    dress: Dress,
    *,
    format: str = "parquet",
    lineage: bool = False,
    whole: bool = False,
    told: frozenset[str] = frozenset(),
) -> bytes:
    """Return a data file, or an equality delete file, of these columns of the rows.

    With `lineage`, rows keep who they are in columns of their own. A file that is not `whole` may
    lack columns that are null in every row, and those whose one value is `told` elsewhere.
    """
    kept = []
    for each in dress.shuffled([*columns, *_SELF_TOLD] if lineage else columns):
        absent = each.default is None and all(row.get(each.key) is None for row in rows)
        left_out = not each.required and not whole and absent and dress.chance(0.3)
        if not left_out and each.key not in told:
            kept.append(each)
    return _WRITERS[format](rows, kept, dress)


def position_file(
    named: list[tuple[str | None, int | None]], dress: Dress, *, format: str = "parquet"
) -> bytes:
    """Return a position delete file of v2: a data file and one of its rows, a row each."""
    rows = [{"file_path": path, "pos": row} for path, row in named]
    return _WRITERS[format](rows, _POSITIONS, dress)
