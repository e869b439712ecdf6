package icetree;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Parquet files of which Spark reads single fields of structs, and finds these by their ids.
 *
 * <p>Spark leaves out fields that a query does not need, and makes the schema to read anew: names and
 * types stay, ids of what is within structs are lost. Here they are put back, by name: those of one
 * relation are all Spark's own, whatever files call their fields.
 *
 * <p>Within structs fields go to the reader under names that no file has: it goes by names before it
 * goes by ids when it decides what type to read a field as. Its rows have places, and no names.
 *
 * <p>Only the driver ever needs this class: the reader that goes to executors is made by Spark's own.
 */
public class FieldsById extends ParquetFileFormat {
  /** Where Spark looks for a column's field id. */
  private static final String ID = "parquet.field.id";

  /** All that there is to read, with ids. */
  private final StructType whole;

  public FieldsById(StructType whole) {
    this.whole = whole;
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partitions, StructType required,
      Seq filters, Map options, Configuration conf) {
    // Whatever the session that runs the query has set.
    conf.setBoolean("spark.sql.parquet.fieldId.read.enabled", true);
    return new ParquetFileFormat().buildReaderWithPartitionValues(
        session, told(data, whole, false), partitions, told(required, whole, false), filters,
        options, conf);
  }

  /** Returns a part of a type with all that the whole one says of the same fields. */
  private static DataType told(DataType part, DataType whole) {
    // Of a variant Spark reads values at paths, as a struct of its own making.
    if (part.getClass() != whole.getClass()) {
      return part;
    }
    if (part instanceof StructType) {
      return told((StructType) part, (StructType) whole, true);
    }
    if (part instanceof ArrayType) {
      ArrayType list = (ArrayType) part;
      return new ArrayType(
          told(list.elementType(), ((ArrayType) whole).elementType()), list.containsNull());
    }
    if (part instanceof MapType) {
      MapType map = (MapType) part;
      MapType of = (MapType) whole;
      return new MapType(
          told(map.keyType(), of.keyType()), told(map.valueType(), of.valueType()),
          map.valueContainsNull());
    }
    return part;
  }

  private static StructType told(StructType part, StructType whole, boolean within) {
    StructField[] fields = new StructField[part.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = part.fields()[i];
      Option at = whole.getFieldIndex(field.name());
      // What is not there is a column of Spark's own, such as the number of a row.
      if (at.isDefined()) {
        StructField of = whole.fields()[((Integer) at.get()).intValue()];
        boolean renamed = within && of.metadata().contains(ID);
        String name = renamed ? field.name() + " #" + of.metadata().getLong(ID) : field.name();
        field = new StructField(
            name, told(field.dataType(), of.dataType()), field.nullable(), of.metadata());
      }
      fields[i] = field;
    }
    return new StructType(fields);
  }
}
