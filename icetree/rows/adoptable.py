"""Whether a table can hold what is in a file of others: a value that does not fit, nobody could read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import FloatType, UnknownType

from icetree.errors import InvalidInput
from icetree.rows.formats.parquet import PARQUET
from icetree.rows.project import Node
from icetree.rows.read.files import DataFile, ReadRules
from icetree.rows.read.row_groups import flat_leaves
from icetree.rows.schema import arrow_type
from icetree.spec.arrays import is_blob
from icetree.spec.schema.shape import Shape


def node_of(nodes: Sequence[Node], id: int) -> Node | None:
    for node in nodes:
        if node.id == id:
            return node
        if (found := node_of(node.children, id)) is not None:
            return found
    return None


def require_readable(file: DataFile, shape: Shape) -> None:
    """Read what may not fit the table's types as it is: with a value that does not, nobody reads the file."""
    unsure = {
        id
        for id, field in shape.columns.items()
        if (node := node_of(file.nodes, id)) is not None
        and not node.children
        and not _always_fits(node.type, arrow_type(field.field_type))
    }
    if not unsure:
        return
    rules = ReadRules(location=file.location)
    for id in sorted(unsure):
        have, field = node_of(file.nodes, id), shape.columns[id]
        if have is not None and isinstance(field.field_type, FloatType):
            # It would be read as what is next to it.
            raise rules.misfit(shape.names[id], have.type, field.field_type)
    columns = [each for each in shape.schema.fields if unsure & index_by_id(Schema(each)).keys()]
    for group in file.groups:
        for _ in file.read(group, columns, rules):
            pass


def _always_fits(have: pa.DataType, want: pa.DataType) -> bool:
    """Tell whether every value of a type is one of another; where that is not known, false."""
    is_ = pa.types
    if isinstance(want, pa.BaseExtensionType):
        want = want.storage_type
    if is_.is_dictionary(have):
        have = have.value_type
    if have == want or is_.is_null(have) or is_.is_null(want):
        return True
    if is_.is_integer(have) and is_.is_integer(want):
        return bool(have.bit_width < want.bit_width + is_.is_signed_integer(have))
    if is_.is_floating(have) and is_.is_floating(want):
        return bool(have.bit_width <= want.bit_width)
    if is_.is_decimal(have) and is_.is_decimal(want):
        return bool(have.scale == want.scale and have.precision <= want.precision)
    if is_.is_timestamp(have) and is_.is_timestamp(want):
        return bool(have.unit == want.unit)
    texts = (is_.is_string, is_.is_large_string, is_.is_string_view)
    if any(kind(have) for kind in texts):
        return any(kind(want) for kind in texts)
    return is_blob(have) and is_blob(want)


def require_no_values(file: DataFile, shape: Shape) -> None:
    """Refuse values in a column without a type yet: read as nulls, the next rewrite would lose them."""
    untyped = {id for id, each in shape.columns.items() if isinstance(each.field_type, UnknownType)}
    for id in sorted(untyped):
        node = node_of(file.nodes, id)
        if not (node is None or pa.types.is_null(node.type) or _is_of_nulls(file, id)):
            raise InvalidInput(
                f"{file.location} cannot be added: column {shape.names[id]!r} has no type yet, so it "
                "takes nulls alone: give it a type first, with edit_schema().widen(…)"
            )


def _is_of_nulls(file: DataFile, id: int) -> bool:
    """Tell whether a footer says of a column that it has nulls alone."""
    leaf = dict(flat_leaves(file.nodes)).get(id) if file.format == PARQUET.name else None
    if leaf is None:
        return False
    told = [file.reader.statistics(each.ordinal, leaf) for each in file.groups]
    return all(
        one is not None and one.has_null_count and one.null_count == each.rows
        for one, each in zip(told, file.groups, strict=True)
    )
