"""What went wrong in Spark, in one line: ours as it was raised, Spark's without the stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException, ParseException, PySparkException

from icetree import errors
from icetree.errors import IcetreeError, InvalidInput

_OURS: Final = re.compile(r"icetree\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


@contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of executors and of Spark's analysis into ours, which say what to do."""
    try:
        yield
    except PySparkException as error:
        raised = _raised_on_executor(str(error))
        if raised is not None:
            raise raised from None
        if _is_the_callers(error):
            raise InvalidInput(said(error)) from None
        raise


def _is_the_callers(error: PySparkException) -> bool:
    """Tell whether the statement or its rows are at fault: Spark gives its own faults XX."""
    if isinstance(error, AnalysisException | ParseException):
        return True
    state = error.getSqlState()
    return state is not None and state[:2] in ("22", "21", "23", "42")


def said(error: PySparkException) -> str:
    """Return Spark's own message, without plans and stacks."""
    text = error.getMessage() or str(error)
    head = re.split(r"\n\s*(?:'|\+-|at org\.|JVM stacktrace|== SQL)", text)[0]
    return " ".join(head.split(";\n")[0].split())


def _raised_on_executor(text: str) -> IcetreeError | None:
    found = _OURS.findall(text)
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    if kind is None or kind is errors.CorruptTable:
        return InvalidInput(message)
    raised: IcetreeError = kind(message)
    return raised
