"""Iceberg Java in a bare JVM, without Spark: it starts in a second."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from icetree.spark.java import java_home
from tests.jars import fetched, place_of
from tests.peers.plans import Planned

_SMALL = [
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dslf4j.internal.verbosity=ERROR",
]
EVERYTHING = '{"type": "literal", "value": true}'


class IcebergJava:
    """Loads tables from metadata files, plans and reads them."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway = gateway
        self.jvm: Any = gateway.jvm
        self._classes = self.jvm.Thread.currentThread().getContextClassLoader()
        self._ask = self.compiled("Ask", _ASK)
        self._io = self.jvm.org.apache.iceberg.hadoop.HadoopFileIO(
            self.jvm.org.apache.hadoop.conf.Configuration()
        )

    def compiled(self, name: str, source: str) -> Any:
        """Return an object of a class, whose source may name those that were compiled before."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(self._classes)
        compiler.cook(source)
        self._classes = compiler.getClassLoader()
        return self._classes.loadClass(name).newInstance()

    def strings(self, *values: str) -> Any:
        """Return an array of strings."""
        return self._array(self.jvm.String, values)

    def numbers(self, *values: int) -> Any:
        """Return an array of ints."""
        return self._array(self.jvm.int, values)

    def _array(self, kind: Any, values: Sequence[Any]) -> Any:
        made = self._gateway.new_array(kind, len(values))
        for at, value in enumerate(values):
            made[at] = value
        return made

    def parse(self, document: str) -> Any:
        """Return table metadata as Java reads it."""
        return self.jvm.org.apache.iceberg.TableMetadataParser.fromJson(document)

    def table(self, metadata_location: str) -> Any:
        """Return the table that a metadata file tells of."""
        iceberg = self.jvm.org.apache.iceberg
        operations = iceberg.StaticTableOperations(metadata_location, self._io)
        return iceberg.BaseTable(operations, "t")

    def served(self, uri: str, namespace: str, name: str, **properties: str) -> Any:
        """Return a table as a REST catalog serves it, to a client that sets properties."""
        catalog = self.jvm.org.apache.iceberg.rest.RESTCatalog()
        catalog.setConf(self.jvm.org.apache.hadoop.conf.Configuration())
        told = {key.replace("_", "-"): value for key, value in properties.items()}
        catalog.initialize("served", {"uri": uri, **told})
        identifier = self.jvm.org.apache.iceberg.catalog.TableIdentifier.parse(
            f"{namespace}.{name}"
        )
        return catalog.loadTable(identifier)

    def plan(
        self, table: Any, filter: str = EVERYTHING, *, at: int | None = None
    ) -> Planned | None:
        """Return each planned file with its deletes; None where Java fails on a null partition."""
        told = self._told("plan", table, filter, at, ())
        if told is None:
            return None
        found = {}
        for location, *deletes in told:
            parts = zip(*[iter(deletes)] * 3, strict=True)
            assert location not in found, f"Java plans {location} twice"
            found[location] = frozenset(
                (file, _number(at), _number(size)) for file, at, size in parts
            )
        return found  # type: ignore[return-value]

    def rows(
        self, table: Any, columns: Sequence[str], filter: str = EVERYTHING, *, at: int | None = None
    ) -> list[tuple[str, ...]] | None:
        """Return rows, deletes applied, each column as text; None as for a plan."""
        told = self._told("rows", table, filter, at, columns)
        return None if told is None else sorted(map(tuple, told))

    def first_row_ids(self, table: Any) -> dict[str, str]:
        """Return the first row id of each planned file, as text."""
        return dict(self._told("ids", table, EVERYTHING, None, ()) or [])

    def changes(self, table: Any, at: int) -> list[list[str]]:
        """Return what a snapshot added and removed: how, and which file."""
        return sorted(self._told("changes", table, EVERYTHING, at, ()) or [])

    def _told(
        self, what: str, table: Any, filter: str, at: int | None, columns: Sequence[str]
    ) -> list[list[str]] | None:
        asked = json.dumps([what, filter, "" if at is None else str(at), *columns])
        text = self._ask.apply(table, asked)
        return None if text is None else [line.split("\t") for line in text.splitlines()]


def _number(text: str) -> int | None:
    return None if text == "null" else int(text)


@contextmanager
def iceberg_java() -> Iterator[IcebergJava]:
    """Start Iceberg Java, and end it."""
    jars = Path(pyspark.__file__).parent / "jars"
    [py4j] = jars.glob("py4j*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        # A jar that is missing is passed over: whoever needs SQLite asks for it.
        classpath=f"{fetched('iceberg-java')}:{place_of('sqlite-jdbc')}:{jars}/*",
        javaopts=_SMALL,
        java_path=str(java_home() / "bin" / "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    found = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=found)
    try:
        yield IcebergJava(gateway)
    finally:
        gateway.shutdown()


#: One call tells all: asking Java for each file or row by itself would take minutes. It is for the
#: compiler that Spark brings along, which knows no generics.
_ASK = """
import java.util.Iterator;
import java.util.List;
import org.apache.iceberg.*;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.*;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;

public class Ask implements java.util.function.BiFunction {
  public Object apply(Object given, Object asked) {
    try {
      return told((Table) given, (List) new ObjectMapper().readValue((String) asked, List.class));
    } catch (java.io.IOException error) {
      throw new RuntimeException(error);
    } catch (NullPointerException error) {
      if (!isOfExpressions(error)) throw error;
      return null;
    }
  }

  // A set of strings is asked whether it holds the null, or the null how it starts. Told here and
  // not by an error: PySpark, once imported, takes the errors of every gateway for its session's.
  public static boolean isOfExpressions(Throwable error) {
    StackTraceElement[] trace = error.getStackTrace();
    for (int i = 0; i < trace.length; i++) {
      if (trace[i].getClassName().startsWith("org.apache.iceberg.expressions.")) return true;
    }
    return false;
  }

  private String told(Table table, List asked) throws java.io.IOException {
    String what = (String) asked.get(0);
    String at = (String) asked.get(2);
    List columns = asked.subList(3, asked.size());
    Expression filter = ExpressionParser.fromJson((String) asked.get(1), table.schema());
    StringBuilder text = new StringBuilder();
    if (what.equals("plan")) plan(table, filter, at, text);
    if (what.equals("ids")) ids(table, text);
    if (what.equals("rows")) rows(table, filter, at, columns, text);
    if (what.equals("changes")) changes(table, Long.parseLong(at), text);
    return text.toString();
  }

  private void plan(Table table, Expression filter, String at, StringBuilder text) {
    TableScan scan = (TableScan) table.newScan().filter(filter);
    if (!at.isEmpty()) scan = scan.useSnapshot(Long.parseLong(at));
    Iterator tasks = scan.planFiles().iterator();
    while (tasks.hasNext()) {
      FileScanTask task = (FileScanTask) tasks.next();
      text.append(((DataFile) task.file()).location());
      Iterator deletes = task.deletes().iterator();
      while (deletes.hasNext()) {
        DeleteFile one = (DeleteFile) deletes.next();
        text.append('\\t').append(one.location());
        text.append('\\t').append((Object) one.contentOffset());
        text.append('\\t').append((Object) one.contentSizeInBytes());
      }
      text.append('\\n');
    }
  }

  private void ids(Table table, StringBuilder text) {
    Iterator tasks = table.newScan().planFiles().iterator();
    while (tasks.hasNext()) {
      DataFile file = (DataFile) ((FileScanTask) tasks.next()).file();
      text.append(file.location()).append('\\t').append((Object) file.firstRowId()).append('\\n');
    }
  }

  private void rows(
      Table table, Expression filter, String at, List columns, StringBuilder text)
      throws java.io.IOException {
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table).where(filter);
    if (!at.isEmpty()) scan = scan.useSnapshot(Long.parseLong(at));
    Iterator found = scan.build().iterator();
    while (found.hasNext()) {
      Record one = (Record) found.next();
      for (int i = 0; i < columns.size(); i++) {
        if (i > 0) text.append('\\t');
        text.append(said(one.getField((String) columns.get(i))));
      }
      text.append('\\n');
    }
  }

  private Object said(Object value) {
    if (value instanceof byte[]) value = java.nio.ByteBuffer.wrap((byte[]) value);
    return value instanceof java.nio.ByteBuffer ? hex((java.nio.ByteBuffer) value) : value;
  }

  public static String hex(java.nio.ByteBuffer given) {
    java.nio.ByteBuffer bytes = (java.nio.ByteBuffer) given.duplicate();
    StringBuilder hex = new StringBuilder();
    while (bytes.hasRemaining()) {
      int one = bytes.get() & 255;
      hex.append(Integer.toHexString(one + 256).substring(1));
    }
    return hex.toString();
  }

  private void changes(Table table, long at, StringBuilder text) {
    Snapshot one = table.snapshot(at);
    told("added", one.addedDataFiles(table.io()), text);
    told("removed", one.removedDataFiles(table.io()), text);
    told("added deletes", one.addedDeleteFiles(table.io()), text);
    told("removed deletes", one.removedDeleteFiles(table.io()), text);
  }

  private void told(String how, Iterable files, StringBuilder text) {
    Iterator all = files.iterator();
    while (all.hasNext()) {
      ContentFile file = (ContentFile) all.next();
      text.append(how).append('\\t').append(file.location());
      if (file instanceof DeleteFile) {
        text.append('\\t').append((Object) ((DeleteFile) file).contentOffset());
      } else {
        text.append('\\t').append((Object) ((DataFile) file).firstRowId());
      }
      text.append('\\n');
    }
  }
}
"""
