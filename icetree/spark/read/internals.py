"""All that reading knows of Spark's internals: a relation that asks for its files when it runs, and a
format whose fields are found by their ids at any depth.

`TreeIndex.java` and `FieldsById.java` are compiled by the compiler that Spark carries for its own generated
code, once for each Java virtual machine. `tests/spark/test_internals.py` tells when Spark changes something
of this.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from icetree.spark.jvm import java_of
from icetree.visible import log_of

log = log_of(__name__)

#: `false` has tables read without the relation: planned at once, listed through a folder.
SETTING: Final = "spark.icetree.read.lazy"

#: A column of this name, which no file has, is filled with where each row stands in its file: the
#: reader's own word for `_metadata.row_index`, which comes as a struct that every row would pay for.
ROW_INDEX: Final = "_tmp_metadata_row_index"

#: Answers of up to so many bytes go to Java as they come. On the way larger ones would be text, which takes some
#: 8 ms for each megabyte, at every query.
_BY_WIRE_BYTES: Final = 64 * 1024
#: What Spark takes for the size of what nobody knows the size of.
UNKNOWN_BYTES: Final = 2**63 - 1

#: The classes of ours, each in a file of its name.
_INDEX: Final = "TreeIndex"
_FORMAT: Final = "FieldsById"
#: Whether Spark reads single fields of a struct, which it would look for by name.
_PRUNING: Final = "spark.sql.optimizer.nestedSchemaPruning.enabled"
_EXECUTION: Final = "org.apache.spark.sql.execution.datasources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What Java asks for: files, as Arrow data, that may hold rows of some conditions; their size.

    What `files` raises reaches the user as one line of a Spark exception. Whatever has the same `question`
    answers alike; None for what is like no other.
    """

    files: Callable[[list[Any]], pa.Buffer]
    size: Callable[[], int]
    question: str | None = None

    def apply(self, conditions: Any) -> bytearray | str:
        """Return the files, or the path of a file with them; what is wrong with the table, as text."""
        try:
            asked = [conditions.apply(at) for at in range(conditions.size())]
            answer = memoryview(self.files(asked))
            if len(answer) > _BY_WIRE_BYTES:
                with suppress(OSError):
                    return _in_file(answer)
            return bytearray(answer)
        except Exception as error:
            kind = type(error)
            return f"{kind.__module__}.{kind.__qualname__}: {error}"

    def getAsLong(self) -> int:  # noqa: N802  # Java's own name
        """Return how many bytes there are to read; what is wrong with the table, the files tell."""
        try:
            return self.size()
        except Exception:
            return UNKNOWN_BYTES

    class Java:
        """The interfaces that Java sees."""

        implements: Final = ["java.util.function.Function", "java.util.function.LongSupplier"]


def _in_file(answer: memoryview) -> str:
    """Return the path of a file, which Java deletes once it has read it."""
    with tempfile.NamedTemporaryFile(prefix="icetree-files-", delete=False) as file:
        try:
            file.write(answer)
        except BaseException:
            Path(file.name).unlink()
            raise
    return file.name


class Internals:
    """Makes relations and expressions in the Java of a session."""

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self._spark = spark
        self._java = java = java_of(spark)
        gateway = spark.sparkContext._gateway  # noqa: SLF001
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        self._index = _compiled(gateway, _INDEX)
        self._format = _compiled(gateway, _FORMAT)
        self._make = java.org.apache.spark.sql.catalyst.expressions
        self._columns = java.org.apache.spark.sql.classic.ExpressionUtils
        self._types = java.org.apache.spark.sql.types
        #: Expressions that were made before; they take many messages to Java.
        self.made: dict[tuple[str, ...], Column] = {}

    def relation(
        self,
        asked: Asked,
        *,
        place: str,
        facts: StructType,
        schema: StructType,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> DataFrame:
        """Return the rows of the Parquet files that `asked` will name, unread.

        `schema` is that of the files, `facts` that of what is known of each as a whole; the answer
        has a file's address and size, then its facts. `place` is what plans show, `options` are those of
        Parquet's reader. Beside both, rows have `ROW_INDEX`.
        """
        schema = StructType([*schema, StructField(ROW_INDEX, LongType())])
        whole = self._type(schema)
        return self._frame(
            self._made(self._index, asked, asked, self._type(facts), place, asked.question),
            self._type(facts),
            whole,
            self._java.scala.Option.empty(),
            self._made(self._format, whole),
            self._java.PythonUtils.toScalaMap(dict(options)),
        )

    def by_id(self, rows: DataFrame) -> DataFrame:
        """Return the rows of Parquet files that Spark was given a schema for, fields found by their ids at any depth."""
        relation = rows._jdf.queryExecution().analyzed().relation()  # noqa: SLF001  # Spark has no other door
        return self._frame(
            relation.location(),
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            self._made(self._format, relation.dataSchema()),
            relation.options(),
        )

    def reads_batches(self, schema: StructType) -> bool:
        """Tell whether the session lets Spark's reader of Parquet files read batches of these columns."""
        known = self._package(_EXECUTION).parquet.ParquetUtils
        conf = self._spark._jsparkSession.sessionState().conf()  # noqa: SLF001
        return bool(known.isBatchReadSupportedForSchema(conf, self._type(schema)))

    def _frame(self, *of: Any) -> DataFrame:
        """Return the rows of a relation, given all that it is made of but the session."""
        session = self._spark._jsparkSession  # noqa: SLF001
        relation = self._package(_EXECUTION).HadoopFsRelation(*of, session)
        return DataFrame(session.baseRelationToDataFrame(relation), self._spark)

    def _made(self, of: Any, *given: Any) -> Any:
        """Return a new object of a class of ours."""
        all = self._java.java.util.ArrayList()
        for each in given:
            all.add(each)  # a proxy of Python's cannot be put into an array directly
        return of.getConstructors()[0].newInstance(all.toArray())

    def number_at(self, bytes: Column, at: Column, *, long: bool = False) -> Column:
        """Return the `int` or `long` that a BINARY column has at an offset, big end first.

        Nothing is copied, and an offset outside of the bytes raises.
        """
        type = self._class("java.nio.ByteBuffer")
        given, none = self._seq(self._expression(bytes)), self._seq()
        empty, object = self._java.scala.Option.empty(), self._types.ObjectType(type)
        make, numbers = self._make.objects, self._types.DataTypes
        buffer = make.StaticInvoke(type, object, "wrap", given, none, True, False, True, empty)
        method, returns = ("getLong", numbers.LongType) if long else ("getInt", numbers.IntegerType)
        offset = self._seq(self._expression(at))
        called = make.Invoke(buffer, method, returns, offset, none, True, True, True)
        return ClassicColumn(self._columns.column(called))

    def _expression(self, column: Column) -> Any:
        return self._columns.expression(column._jc)  # noqa: SLF001  # Spark has no other door

    def _type(self, schema: StructType) -> Any:
        return self._types.DataType.fromJson(schema.json())

    def _package(self, name: str) -> Any:
        found = self._java
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _class(self, name: str) -> Any:
        return self._java.java.lang.Class.forName(name)

    def _seq(self, *members: Any) -> Any:
        return self._java.PythonUtils.toSeq(list(members))


def internals(spark: SparkSession) -> Internals | None:
    """Return what makes relations in a session; None where it cannot, or is told not to."""
    if spark.conf.get(SETTING, "true").lower() == "false":  # type: ignore[union-attr]
        return None
    return _known(spark)


def found_by_id(rows: DataFrame) -> DataFrame:
    """Return the rows of Parquet files that Spark was given a schema for, fields found by their ids at any depth.

    Where that cannot be had, the session reads structs whole from now on.
    """
    known = _known(rows.sparkSession)
    if known is not None:
        return known.by_id(rows)
    rows.sparkSession.conf.set(_PRUNING, "false")
    return rows


def _known(spark: SparkSession) -> Internals | None:
    if spark not in _KNOWN:
        _KNOWN[spark] = _found(spark)
    return _KNOWN[spark]


_KNOWN: Final[WeakKeyDictionary[SparkSession, Internals | None]] = WeakKeyDictionary()


def _found(spark: SparkSession) -> Internals | None:
    try:
        found = Internals(spark)
        _try_out(found)
        return found
    except (Py4JError, PySparkException, TypeError, AttributeError, OSError) as error:
        # Another version of Spark may differ.
        why = str(error).splitlines()[0]
    log.warning("tables are planned before Spark runs a query, not when it does: %s", why)
    return None


def _try_out(found: Internals) -> None:
    """Make one of everything: what another version of Spark lacks is to be told here, not by a query."""
    facts = StructType([StructField("bytes", BinaryType())])
    asked = Asked(files=lambda _: pa.py_buffer(b""), size=lambda: 0)
    rows = found.relation(asked, place="file:///", facts=facts, schema=StructType())
    number = found.number_at(functions.col("bytes"), functions.lit(0))
    rows.select(number, found.number_at(functions.col("bytes"), functions.lit(0), long=True))
    found.by_id(rows)
    found.reads_batches(facts)


#: Classes of ours, by the way to the Java virtual machine that has them, and their names.
_COMPILED: Final[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()


def _compiled(gateway: Any, name: str) -> Any:
    """Return a class of ours, compiled where Java does not have it yet."""
    known = _COMPILED.setdefault(gateway, {})
    if name not in known:
        java = gateway.jvm
        compiler = java.org.codehaus.janino.SimpleCompiler()
        loader = java.java.lang.Thread.currentThread().getContextClassLoader()
        compiler.setParentClassLoader(loader)
        compiler.cook(files(__package__).joinpath(f"{name}.java").read_text())
        known[name] = compiler.getClassLoader().loadClass(f"icetree.{name}")
    return known[name]
