"""`IDENTIFIER(…)`: a name that an expression tells, in the place of the name itself."""

from __future__ import annotations

from itertools import pairwise

from pyspark.sql import SparkSession

from icetree.errors import InvalidInput
from icetree.spark.complaints import plainly
from icetree.spark.names import quoted
from icetree.spark.tokens import Edit, edited, tokens
from icetree.spark.trees import seq


def identified(spark: SparkSession, text: str) -> str:
    """Return a statement with names in place of `IDENTIFIER(…)`, whatever they are names of."""
    if "identifier" not in text.lower():
        return text
    found = tokens(text)
    edits: list[Edit] = []
    for word, opening in pairwise(found):
        if word.says("IDENTIFIER") and opening.text == "(":
            closing = next(
                (t for t in found if t.start > opening.start and t.depth == opening.depth), None
            )
            if closing is not None:
                name = _name(spark, text[opening.stop : closing.start])
                edits.append((word.start, closing.stop, name))
    return edited(text, edits)


def _name(spark: SparkSession, expression: str) -> str:
    with plainly():
        [[told]] = spark.sql(f"SELECT {expression}").collect()
        if not isinstance(told, str):
            raise InvalidInput(f"IDENTIFIER({expression}) is {told!r}: it must be text")
        parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001  # Spark's only door
        return ".".join(map(quoted, seq(parser.parseMultipartIdentifier(told))))
