"""Default values of columns, checked and put in Iceberg's JSON form for single values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation
from math import isfinite
from struct import pack
from typing import Any, Final
from uuid import UUID

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icetree.errors import InvalidInput

_BITS: Final[dict[type[IcebergType], int]] = {IntegerType: 31, LongType: 63}
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)
_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?"
)
_ISO_TIME: Final = re.compile(r"(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?")


def default_json(value: Any, type: IcebergType, *, where: str) -> Any:
    """Return a default value in JSON form; InvalidInput, naming `where`, if it is not of the type.

    Values may be given in that form already, nested ones as text of it. None is the null default of any type.
    """
    try:
        return None if value is None else _json(value, type)
    except (ValueError, InvalidOperation, OverflowError) as error:
        why = f": {error}" if isinstance(error, ValueError) and str(error) else ""
        raise InvalidInput(f"{where}: {value!r} cannot be a default of type {type}{why}") from None


def widened_default(default: Any, old: IcebergType, new: IcebergType) -> Any:
    """Return a default in JSON form as a column of type `old` keeps it when it becomes `new`."""
    if default is None or not isinstance(old, DateType):
        return default
    match new:
        case TimestampType():
            return f"{default}T00:00:00.000000"
        case TimestampNanoType():
            return f"{default}T00:00:00.000000000"
        case _:
            return default


def _json(value: Any, type: IcebergType) -> Any:
    form = _FORMS.get(type.__class__)
    if form is None:
        raise ValueError("columns of this type have no default but null")
    return form(value, type)


def _nested(value: Any, type: IcebergType) -> Any:
    if isinstance(value, str):
        value = json.loads(value)
    match type, value:
        case StructType(), Mapping() if not value:
            return {}
        case StructType(), Mapping():
            raise ValueError(
                "a struct's default is {} or None; its fields have defaults of their own"
            )
        case ListType(), Sequence() if not isinstance(value, str | bytes):
            return [_part(each, type.element_type, type.element_required) for each in value]
        case MapType(), Mapping():
            # In JSON form already, unless a map from strings has just these two keys.
            pairs = list(value.items())
            if value.keys() == {"keys", "values"} and isinstance(value["keys"], list):
                pairs = list(zip(value["keys"], value["values"], strict=True))
            return {
                "keys": [_part(key, type.key_type, True) for key, _ in pairs],
                "values": [_part(each, type.value_type, type.value_required) for _, each in pairs],
            }
    raise ValueError


def _part(value: Any, type: IcebergType, required: bool) -> Any:
    if value is None:
        if required:
            raise ValueError("null is not allowed inside")
        return None
    return _json(value, type)


def _plain(value: Any, type: IcebergType) -> Any:
    if not isinstance(value, bool if isinstance(type, BooleanType) else str):
        raise ValueError
    return value


def _whole(value: Any, type: IcebergType) -> int:
    bits = _BITS[type.__class__]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    if not -(2**bits) <= value < 2**bits:
        raise ValueError("out of range")
    return value


def _real(value: Any, type: IcebergType) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError
    if not isfinite(value):
        raise ValueError("JSON has no NaN and no infinity")
    if isinstance(type, FloatType):
        pack("<f", value)  # overflows for what a float cannot hold
    return float(value)


def _decimal(value: Any, type: IcebergType) -> str:
    assert isinstance(type, DecimalType)
    if not isinstance(value, int | str | Decimal) or isinstance(value, bool):
        raise ValueError("give a Decimal, a string or a whole number")
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError
    sign, digits, exponent = exact.as_tuple()
    shift = int(exponent) + type.scale
    unscaled = int("".join(map(str, digits)))
    if shift < 0 and unscaled % 10**-shift:
        raise ValueError(f"more than {type.scale} digits after the point")
    unscaled = unscaled * 10**shift if shift >= 0 else unscaled // 10**-shift
    if len(str(unscaled)) > type.precision:
        raise ValueError(f"more than {type.precision} digits")
    found = Decimal((sign, tuple(map(int, str(unscaled))), -type.scale))
    return f"{found:f}" if type.scale >= 0 else str(found)


def _date(value: Any, _: IcebergType) -> str:
    if isinstance(value, str):
        value = date.fromisoformat(value)
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError
    return value.isoformat()


def _time(value: Any, _: IcebergType) -> str:
    if isinstance(value, str) and (found := _ISO_TIME.fullmatch(value)):
        value = time.fromisoformat(found[1]).replace(
            microsecond=int((found[2] or "0").ljust(6, "0"))
        )
    if not isinstance(value, time) or value.tzinfo is not None:
        raise ValueError("a time without a zone is needed")
    return value.isoformat(timespec="microseconds")


def _timestamp(value: Any, type: IcebergType) -> str:
    digits = 9 if isinstance(type, TimestampNanoType | TimestamptzNanoType) else 6
    if isinstance(value, str):
        moment, fraction = _parse_moment(value)
    elif isinstance(value, datetime):
        moment, fraction = value.replace(microsecond=0), f"{value.microsecond:06d}"
    else:
        raise ValueError
    if fraction[digits:].strip("0"):
        raise ValueError("finer than a microsecond")
    zoned = isinstance(type, _ZONED)
    if (moment.tzinfo is not None) != zoned:
        raise ValueError("it needs a zone offset" if zoned else "it must have no zone offset")
    if zoned:
        moment = moment.astimezone(timezone.utc)
    text = moment.replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{text}.{fraction[:digits].ljust(digits, '0')}{'+00:00' if zoned else ''}"


def _parse_moment(text: str) -> tuple[datetime, str]:
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError("not an ISO 8601 timestamp")
    zone = "+00:00" if found[4] == "Z" else found[4] or ""
    return datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}"), found[3] or ""


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return bytes.fromhex(value)
    if not isinstance(value, bytes | bytearray):
        raise ValueError("give bytes, or their hexadecimal form")
    return bytes(value)


def _fixed(value: Any, type: IcebergType) -> str:
    assert isinstance(type, FixedType)
    found = _bytes(value)
    if len(found) != len(type):
        raise ValueError(f"{len(found)} bytes long")
    return found.hex()


def _binary(value: Any, _: IcebergType) -> str:
    return _bytes(value).hex()


def _uuid(value: Any, _: IcebergType) -> str:
    if not isinstance(value, UUID | str):
        raise ValueError
    return str(UUID(str(value)))


_FORMS: Final[Mapping[type[IcebergType], Callable[[Any, IcebergType], Any]]] = {
    BooleanType: _plain,
    StringType: _plain,
    IntegerType: _whole,
    LongType: _whole,
    FloatType: _real,
    DoubleType: _real,
    DecimalType: _decimal,
    DateType: _date,
    TimeType: _time,
    TimestampType: _timestamp,
    TimestamptzType: _timestamp,
    TimestampNanoType: _timestamp,
    TimestamptzNanoType: _timestamp,
    UUIDType: _uuid,
    FixedType: _fixed,
    BinaryType: _binary,
    ListType: _nested,
    MapType: _nested,
    StructType: _nested,
}
