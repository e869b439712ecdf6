"""Tables that Iceberg Java makes of the rows that it reads of others: what it took in, it gives back."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from tests.java import IcebergJava


class CopyingJava:
    """Iceberg Java that copies tables."""

    def __init__(self, java: IcebergJava) -> None:
        # Once for a process of Java: what reaches it from Python takes a second class of one name for the first.
        if java not in _COPIES:
            _COPIES[java] = _compiled(java)
        self._copy = _COPIES[java]

    def copied(self, table: Any, folder: str, format: str) -> str:
        """Return the metadata file of a new table of v3: the same schema, partitions and rows."""
        location: str = self._copy.apply(table, f"{folder}\t{format}")
        return location

    def empty(self, schema: str, folder: str) -> str:
        """Return the metadata file of a new table of v3 without a row; the schema is JSON."""
        location: str = self._copy.apply(schema, folder)
        return location


_COPIES: Final[WeakKeyDictionary[IcebergJava, Any]] = WeakKeyDictionary()


def _compiled(java: IcebergJava) -> Any:
    compiler = java.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    return compiler.getClassLoader().loadClass("Copying").newInstance()


#: For the compiler that Spark brings along, which knows no generics.
_SOURCE = """
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.*;

public class Copying implements java.util.function.BiFunction {
  public Object apply(Object given, Object asked) {
    String[] told = ((String) asked).split("\\t");
    try {
      if (given instanceof String) {
        return at(made(SchemaParser.fromJson((String) given), PartitionSpec.unpartitioned(), told[0]));
      }
      return copied((Table) given, told[0], FileFormat.fromString(told[1]));
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  private Table made(Schema schema, PartitionSpec spec, String folder) {
    Map properties = new HashMap();
    properties.put("format-version", "3");
    return new HadoopTables(new org.apache.hadoop.conf.Configuration())
        .create(schema, spec, properties, folder);
  }

  private String at(Table table) {
    return ((HasTableOperations) table).operations().current().metadataFileLocation();
  }

  private String copied(Table from, String folder, FileFormat format) throws Exception {
    Table to = made(from.schema(), from.spec(), folder);
    Schema schema = to.schema();
    GenericAppenderFactory files = new GenericAppenderFactory(schema, to.spec());
    PartitionKey key = new PartitionKey(to.spec(), schema);
    InternalRecordWrapper wrapper = new InternalRecordWrapper(schema.asStruct());
    AppendFiles append = to.newAppend();
    Iterator rows = IcebergGenerics.read(from).build().iterator();
    int number = 0;
    while (rows.hasNext()) {
      Record row = (Record) rows.next();
      key.partition(wrapper.wrap(row));
      OutputFile out = to.io().newOutputFile(
          folder + "/data/" + number + "." + format.name().toLowerCase());
      DataWriter writer = (DataWriter) files.newDataWriter(
          EncryptedFiles.plainAsEncryptedOutput(out),
          format,
          to.spec().isUnpartitioned() ? null : key.copy());
      writer.write(row);
      writer.close();
      append.appendFile(writer.toDataFile());
      number++;
    }
    append.commit();
    to.refresh();
    return at(to);
  }
}
"""
