package icetree;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongSupplier;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The files of a table, asked for when a query runs, with the conditions that Spark pushed down.
 *
 * <p>Python knows which files these are. It answers with one Arrow stream: a row for each file, its
 * address and size, then facts of it, which are its partition values. Every file is a partition of
 * its own, so its facts travel with the task that reads it, and nowhere else.
 *
 * <p>Spark compiles this itself (Janino: Java of about version 8, without type parameters). Only the
 * driver ever needs it.
 */
public class TreeIndex implements FileIndex {
  private static final long BLOCK_BYTES = 128L * 1024 * 1024;

  /** Answers a list of conditions with the files that may hold rows for which all are true. */
  private final Function files;
  /** Tells how many bytes there are to read. */
  private final LongSupplier size;
  private final StructType facts;
  /** What the plan of a query shows as the place of the files. */
  private final String place;
  /** Of two that say the same here, the files are the same for the same conditions; null for no other's. */
  private final String question;

  public TreeIndex(
      Function files, LongSupplier size, StructType facts, String place, String question) {
    this.files = files;
    this.size = size;
    this.facts = facts;
    this.place = place;
    this.question = question;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    return CollectionConverters.asScala(list(partitionFilters, dataFilters)).toSeq();
  }

  /** Returns a directory of each file. */
  private List list(Seq partitionFilters, Seq dataFilters) {
    List found = new ArrayList();
    BufferAllocator memory = ArrowUtils.rootAllocator().newChildAllocator("icetree", 0L, Long.MAX_VALUE);
    try {
      Test[] tests = tests(partitionFilters);
      ArrowStreamReader answer = new ArrowStreamReader(asked(partitionFilters, dataFilters), memory);
      try {
        while (answer.loadNextBatch()) {
          add(answer.getVectorSchemaRoot(), tests, found);
        }
      } finally {
        answer.close();
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } finally {
      memory.close();
    }
    return found;
  }

  private ByteArrayInputStream asked(Seq partitionFilters, Seq dataFilters) throws IOException {
    Object answer = files.apply(partitionFilters.concat(dataFilters));
    if (!(answer instanceof String)) {
      return new ByteArrayInputStream((byte[]) answer);
    }
    File large = new File((String) answer);
    if (!large.isAbsolute()) {
      // What Python has against the table; its own exceptions would come with a stack each.
      throw new IllegalArgumentException((String) answer);
    }
    try {
      return new ByteArrayInputStream(Files.readAllBytes(large.toPath()));
    } finally {
      large.delete();
    }
  }

  private void add(VectorSchemaRoot answer, Test[] tests, List found) {
    List vectors = answer.getFieldVectors();
    ColumnVector[] columns = new ColumnVector[vectors.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new ArrowColumnVector((ValueVector) vectors.get(i));
    }
    ColumnVector[] values = new ColumnVector[facts.length()];
    System.arraycopy(columns, 2, values, 0, values.length);
    ColumnarBatch rows = new ColumnarBatch(values, answer.getRowCount());
    for (int i = 0; i < answer.getRowCount(); i++) {
      InternalRow row = rows.getRow(i).copy();
      if (passes(row, tests)) {
        FileStatus status =
            new FileStatus(
                columns[1].getLong(i), false, 1, BLOCK_BYTES, 0L,
                new Path(java.net.URI.create(columns[0].getUTF8String(i).toString())));
        List file = new ArrayList();
        file.add(new FileStatusWithMetadata(status, Map$.MODULE$.empty()));
        found.add(new PartitionDirectory(row, CollectionConverters.asScala(file).toSeq()));
      }
    }
  }

  /** A condition on facts alone: Spark does not test it again after the scan. */
  private static class Test {
    final BasePredicate predicate;
    final int[] at;

    Test(BasePredicate predicate, int[] at) {
      this.predicate = predicate;
      this.at = at;
    }
  }

  private Test[] tests(Seq filters) {
    Test[] tests = new Test[filters.size()];
    for (int i = 0; i < tests.length; i++) {
      Expression filter = (Expression) filters.apply(i);
      Seq attributes = filter.references().toSeq();
      int[] at = new int[attributes.size()];
      for (int j = 0; j < at.length; j++) {
        at[j] = facts.fieldIndex(((Attribute) attributes.apply(j)).name());
      }
      tests[i] = new Test(Predicate$.MODULE$.create(filter, attributes), at);
    }
    return tests;
  }

  private boolean passes(InternalRow row, Test[] tests) {
    for (int i = 0; i < tests.length; i++) {
      int[] at = tests[i].at;
      Object[] values = new Object[at.length];
      for (int j = 0; j < at.length; j++) {
        values[j] = row.get(at[j], facts.apply(at[j]).dataType());
      }
      if (!tests[i].predicate.eval(new GenericInternalRow(values))) {
        return false;
      }
    }
    return true;
  }

  public String[] inputFiles() {
    Seq none = CollectionConverters.asScala(new ArrayList()).toSeq();
    List all = list(none, none);
    String[] found = new String[all.size()];
    for (int i = 0; i < found.length; i++) {
      PartitionDirectory each = (PartitionDirectory) all.get(i);
      found[i] = ((FileStatusWithMetadata) each.files().head()).getPath().toUri().toString();
    }
    return found;
  }

  public Seq rootPaths() {
    List found = new ArrayList();
    found.add(new Path(place));
    return CollectionConverters.asScala(found).toSeq();
  }

  public long sizeInBytes() {
    return size.getAsLong();
  }

  public StructType partitionSchema() {
    return facts;
  }

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  /** A snapshot never changes. */
  public void refresh() {}

  /** Spark reads, keeps and sends around once what it takes for the same. */
  public boolean equals(Object other) {
    return this == other
        || (question != null
            && other instanceof TreeIndex
            && question.equals(((TreeIndex) other).question));
  }

  public int hashCode() {
    return question == null ? System.identityHashCode(this) : question.hashCode();
  }

  public String toString() {
    return "icetree " + place;
  }
}
