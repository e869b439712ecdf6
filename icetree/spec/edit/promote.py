"""Which types a column may be widened to, and what of the table would not survive it."""

from __future__ import annotations

from typing import Final

from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)

from icetree.spec.metadata.metadata import TableMetadata

#: Transforms that give the same value for a date and for its first moment.
_SAME_FOR_DATES: Final = frozenset({"year", "month", "day", "void"})


def widens(old: IcebergType, new: IcebergType, *, version: int) -> bool:
    """Tell whether files written with the old type can be read as the new, wider one."""
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return bool(new.scale == old.scale and new.precision > old.precision)
        case DateType(), TimestampType() | TimestampNanoType():
            return version >= 3
        case UnknownType(), _:
            return version >= 3 and not isinstance(new, UnknownType)
        case _:
            return False


def ways_out(old: IcebergType, *, version: int) -> str:
    """Return what the type can be widened to, in words."""
    match old:
        case IntegerType():
            return "an int can only become a long"
        case FloatType():
            return "a float can only become a double"
        case DecimalType():
            return f"a {old} can only become a decimal of higher precision and the same scale"
        case DateType() if version >= 3:
            return "a date can only become a timestamp or a timestamp_ns"
        case DateType():
            return f"a date can be widened from format version 3 on, this table has {version}"
        case _:
            return f"a {old} cannot be widened; add a new column instead"


def changed_partitioning(
    metadata: TableMetadata, column_id: int, old: IcebergType, new: IcebergType
) -> str | None:
    """Return why widening would change partition values of the table's files, None if it does not.

    Every spec counts: files of an old one keep the values they were written with.
    """
    if not isinstance(old, DateType) or not isinstance(new, TimestampType | TimestampNanoType):
        return None
    expressions, specs = metadata.partitioning
    used = {id for ids in specs.values() for id in ids}
    for each in expressions:
        changes = each.transform not in _SAME_FOR_DATES
        if column_id in each.source_ids and each.expr_id in used and changes:
            return (
                f"files are partitioned by {each.name!r} ({each.transform} of it), whose values "
                "would differ; add a new column instead"
            )
    return None
