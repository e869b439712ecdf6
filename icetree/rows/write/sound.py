"""Values that their Arrow type has room for and their column's type has not, however deep they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimeType,
)

from icetree.codec.variant.read import Malformed, require_sound
from icetree.codec.wkb import boxes
from icetree.rows.variant import METADATA, VALUE
from icetree.spec.schema.types import VariantType

_KINDS: Final[dict[type[IcebergType], str]] = {
    StringType: "UTF-8 text",
    TimeType: "time",
    GeometryType: "well-known binary",
    GeographyType: "well-known binary",
    VariantType: "variant",
}
_VERSION: Final = 1


def broken(
    array: pa.Array, type: IcebergType, where: str, *, whole: bool = False
) -> Iterator[tuple[str, str, str]]:
    """Yield where values are broken, what they are not, and which one or why.

    Of variants only the beginning is looked at, unless asked to look at them `whole`: it takes long.
    """
    for at, values, kind in _doubtful(array, type, where):
        why = _why(values, kind, whole)
        if why is not None:
            yield at, _KINDS[kind.__class__], why


def _doubtful(
    array: pa.Array, type: IcebergType, where: str
) -> Iterator[tuple[str, pa.Array, IcebergType]]:
    match type:
        case StructType():
            for field, values in zip(type.fields, array.flatten(), strict=True):
                yield from _doubtful(values, field.field_type, f"{where}.{field.name}")
        case ListType():
            yield from _doubtful(_elements(array), type.element_type, f"{where}.element")
        case MapType():
            start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
            yield from _doubtful(array.keys[start:end], type.key_type, f"{where}.key")
            yield from _doubtful(array.items[start:end], type.value_type, f"{where}.value")
        case _ if type.__class__ in _KINDS:
            yield where, array, type


def _elements(array: pa.ListArray) -> pa.Array:
    """Return the elements of lists, but for those that lie hidden under a null."""
    try:
        return array.flatten()
    except pa.ArrowNotImplementedError:
        # Arrow cannot gather lists of UUIDs; of these at least none around a slice are looked at.
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return array.values[start:end]


def _why(values: pa.Array, type: IcebergType, whole: bool) -> str | None:
    match type:
        case GeometryType() | GeographyType():
            return _first(values, ~boxes(values).sound)
        case VariantType():
            content = pc.struct_field(values, VALUE)
            if whole:
                return _malformed(values)
            return _first(content, ~_begin_well(pc.struct_field(values, METADATA), content))
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def _first(values: pa.Array, wrong: npt.NDArray[np.bool_]) -> str | None:
    wrong = wrong & values.is_valid().to_numpy(zero_copy_only=False)
    if not wrong.any():
        return None
    shown = values[int(wrong.argmax())].as_py()[:16].hex()
    return f"such as {shown}" if shown else "such as no bytes at all"


def _begin_well(metadata: pa.Array, value: pa.Array) -> npt.NDArray[np.bool_]:
    heads = pc.binary_slice(pc.fill_null(metadata, b""), 0, 1)
    versions = [bytes([high << 4 | _VERSION]) for high in range(16)]
    known = pc.is_in(heads, value_set=pa.array(versions, pa.binary()))
    some = pc.greater(pc.binary_length(pc.fill_null(value, b"")), 0)
    found: npt.NDArray[np.bool_] = pc.and_(known, some).to_numpy(zero_copy_only=False)
    return found


def _malformed(values: pa.Array) -> str | None:
    pairs = iter(values.drop_null().to_pylist())
    pair = None
    try:
        for pair in pairs:
            require_sound(pair[METADATA], pair[VALUE])
    except Malformed as error:
        assert pair is not None
        return f"such as {pair[VALUE][:16].hex()}: {error}"
    return None
