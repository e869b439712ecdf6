"""What went wrong while Spark ran, in one line: ours as it was raised, Spark's without the stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException

from icetree import errors
from icetree.errors import IcetreeError, InvalidInput
from icetree.spark.plainly import plainly, sentence

_OURS: Final = re.compile(r"icetree\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
#: Classes of SQL states that say that the statement or its rows are at fault.
_CALLERS: Final = frozenset({"21", "22", "23", "42"})


@contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of executors and complaints of Spark's into ours, which say what to do."""
    try:
        with plainly():
            yield
    except PySparkException as error:
        raised = _raised_on_executor(str(error))
        if raised is not None:
            raise raised from None
        if (error.getSqlState() or "")[:2] in _CALLERS:
            raise InvalidInput(sentence(error, placed=False)) from None
        raise


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
