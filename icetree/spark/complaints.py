"""What Spark complains of, in one line and without a Java stack: of a statement, and of its rows.

Errors of ours that were raised on an executor come back as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger

from icetree import errors
from icetree.errors import CorruptTable, IcetreeError, InvalidInput, NotFound
from icetree.spec.schema.metadata_columns import NAMES

#: Where pyspark prints the stack of an error that it also raises.
_NOISE: Final = "SQLQueryContextLogger"
_CODE: Final = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+")
_PLACE: Final = re.compile(r"line (\d+),? pos (\d+)")
_NO_TABLE: Final = "TABLE_OR_VIEW_NOT_FOUND"
_MISSING: Final = frozenset({_NO_TABLE, "SCHEMA_NOT_FOUND"})
_UNRESOLVED: Final = "UNRESOLVED_COLUMN"
_METADATA: Final = (
    "; metadata columns are for queries (lake.sql), of tables that these name: where rows are changed, choose them by "
    "a subquery, such as id IN (SELECT id FROM db.t WHERE _file = '…')"
)
#: What Spark says to whoever named a table that is not there: of its own catalogs, not of the lake.
_ADVICE: Final = re.compile(r"(?<=cannot be found)\. Verify .*?(?= \(line|$)")
_OURS: Final = re.compile(r"icetree\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
#: What an executor says that is asked to work for us and has never heard of it.
_NOT_INSTALLED: Final = "ModuleNotFoundError: No module named 'icetree'"
#: What Spark's own errors are, in Java.
_SPARKS: Final = "org.apache.spark.SparkThrowable"
#: Classes of SQL states that say that the statement or its rows are at fault.
_CALLERS: Final = frozenset({"21", "22", "23", "42", "P0"})
#: What tells, while a statement is carried out, what there is in place of a table that is not.
_INSTEAD: Final = ContextVar[Callable[[str], str] | None]("_INSTEAD", default=None)


@contextmanager
def plainly(called: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn what Spark has against a statement into `InvalidInput`, with its place in the text.

    `called` has names that stand for others in a text which is not the user's own: then a place in
    it would mean nothing.
    """
    try:
        with quietly():
            yield
    except (AnalysisException, ParseException) as error:
        told = sentence(error, placed=called is None)
        instead, missing = _INSTEAD.get(), (error.getMessageParameters() or {}).get("relationName")
        if instead is not None and missing and error.getCondition() == _NO_TABLE:
            told = f"{_ADVICE.sub('', told)}{instead(missing)}"
        for name, meant in (called or {}).items():
            told = told.replace(name, meant)
        kind = NotFound if error.getCondition() in _MISSING else InvalidInput
        raise kind(told) from None
    except Py4JJavaError as error:
        # A function of ours that Spark asked for an expression may have refused.
        raised = _raised_elsewhere(str(error))
        if raised is None:
            raise
        raise raised from None


@contextmanager
def quietly() -> Iterator[None]:
    """Have pyspark print nothing of the errors that it raises."""
    # Made by anybody else it would not know what pyspark tells it, and raise that in place of the error.
    logger = PySparkLogger.getLogger(_NOISE)
    was = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = was


@contextmanager
def hinting(instead: Callable[[str], str]) -> Iterator[None]:
    """Have complaints of a table that is not there say what there is in place of it, by its name."""
    before = _INSTEAD.set(instead)
    try:
        yield
    finally:
        _INSTEAD.reset(before)


@contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of executors and complaints of Spark's into ours, which say what to do."""
    try:
        with plainly():
            yield
    except (PySparkException, Py4JJavaError) as error:
        raised = _raised_elsewhere(str(error))
        if raised is not None:
            raise raised from None
        said = (
            _said_in_java(error.java_exception)
            if isinstance(error, Py4JJavaError)
            else (error.getSqlState(), sentence(error, placed=False))
        )
        if (said[0] or "")[:2] in _CALLERS:
            raise InvalidInput(said[1]) from None
        raise


def _said_in_java(error: Any) -> tuple[str | None, str]:
    """Return the SQL state and the sentence of what Java raised, or of what that came from."""
    gateway = SparkContext._gateway  # noqa: SLF001  # some of Spark's doors convert nothing
    while error is not None:
        if is_instance_of(gateway, error, _SPARKS) and error.getSqlState():
            return error.getSqlState(), _plain(error.getMessage().split("== SQL")[0])
        error = error.getCause()
    return None, ""


def sentence(error: PySparkException, *, placed: bool = True) -> str:
    """Return what an error of Spark's says, as one line, with the place it speaks of."""
    told = str(error)
    first = (error.getMessage() or told).strip()
    if error.getCondition() == "PARSE_SYNTAX_ERROR" or "== SQL" in first:
        first = first.split("== SQL")[0]
    else:
        first = first.split("\n")[0]
    plain = _plain(first) + _of_metadata(error)
    place = _PLACE.search(told)
    if place is None or not placed or _PLACE.search(plain):
        return plain
    return f"{plain.rstrip('.')} (line {place[1]}, position {place[2]})"


def _of_metadata(error: PySparkException) -> str:
    """Return where a metadata column can be read, for who asks for one where none is."""
    asked = (error.getMessageParameters() or {}).get("objectName", "").lower()
    if not (error.getCondition() or "").startswith(_UNRESOLVED):
        return ""
    return _METADATA if any(f"`{name}`" in asked for name in NAMES) else ""


def _plain(told: str) -> str:
    return re.sub(r"\s+", " ", _CODE.sub("", told)).strip().rstrip(";").strip()


def _raised_elsewhere(text: str) -> IcetreeError | None:
    if _NOT_INSTALLED in text:
        return NotFound(
            "icetree is not installed where Spark's executors run: install it in the Python that "
            "PYSPARK_PYTHON names there, or send an environment along (docs/cluster.md)"
        )
    found = _OURS.findall(text)
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    if kind is None:
        return InvalidInput(message)
    if issubclass(kind, CorruptTable):
        file, _, rule = message.partition(": ")
        raised: IcetreeError = kind(file, rule)
    else:
        raised = kind(message)
    return raised
