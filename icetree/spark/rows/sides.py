"""Which of its two tables a clause of MERGE speaks of, where only one of them has a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from icetree.spark.complaints import plainly
from icetree.spark.names import quoted
from icetree.spark.trees import kind, seq, span_of, walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The table, or the source beside it."""

    alias: str
    columns: Sequence[str]

    def has(self, name: str) -> bool:
        """Tell whether it has a column, in any case."""
        return any(name.lower() == own.lower() for own in self.columns)


def speaking_of(side: Side, text: str, *, other: Side, spark: SparkSession) -> str:
    """Return an expression in which every column is said to be of one side.

    A name that both have would be ambiguous otherwise; one of the other side is refused, since
    it would be null.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001  # Spark's only door
    with plainly():
        parsed = parser.parseExpression(text)
    attributes = [each for each in walk(parsed) if kind(each) == "UnresolvedAttribute"]
    for attribute in sorted(attributes, key=_start, reverse=True):
        names = seq(attribute.nameParts())
        if len(names) > 1 and names[0].lower() == side.alias.lower():
            continue
        if side.has(names[0]):
            at = _start(attribute)
            text = f"{text[:at]}{quoted(side.alias)}.{text[at:]}"
        elif other.has(names[0]) or (len(names) > 1 and names[0].lower() == other.alias.lower()):
            raise InvalidInput(
                f"{'.'.join(names)} is not known in a clause for rows that {other.alias} lacks: "
                f"use columns of {side.alias}"
            )
    return text


def _start(node: Any) -> int:
    span = span_of(node)
    assert span is not None  # the parser tells of each node where it stands
    return span.start
