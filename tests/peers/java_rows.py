"""Whole rows as stock Iceberg Java reads them: the answers to many questions in one call.

Java opens a file in two milliseconds, which many filters on many files make minutes of. So for most filters
it plans, and takes a planned file's rows, its deletes applied, as it read them before: its own evaluator
lets them through what the plan left of the filter, as its reader would. In `make laws` it reads for each.
Rows come as JSON, each once and by number in the answers, in the words of `spoken`, which says the same of
rows that Python has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from tests.effort import EFFORT
from tests.java import EVERYTHING, IcebergJava

#: For how many filters of a call every planned file is opened.
_OPENED = 3 if EFFORT == 1 else 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def text_of(row: Mapping[str, Any]) -> str:
    """Return a row that is spoken as text, the same for the same row."""
    return json.dumps(row, sort_keys=True)


def spoken(value: Any) -> Any:
    """Return a value as JSON has it: times in microseconds, maps as sorted pairs, bytes as digits."""
    match value:
        case dict():
            return {name: spoken(each) for name, each in value.items()}
        case [tuple(), *_]:
            # A map, which readers tell in any order.
            return sorted(([spoken(key), spoken(each)] for key, each in value), key=repr)
        case list():
            return [spoken(each) for each in value]
        case bool() | int() | str() | None:
            return value
    return next(say(value) for kind, say in _SAID.items() if isinstance(value, kind))


def _micros(value: datetime) -> int:
    moved = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return (moved - _EPOCH) // timedelta(microseconds=1)


def _micros_of_day(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


#: How values are said, by type: a datetime is a date too.
_SAID: Mapping[type, Callable[[Any], Any]] = {
    float: lambda value: "NaN" if math.isnan(value) else value,
    datetime: _micros,
    date: date.isoformat,
    time: _micros_of_day,
    bytes: bytes.hex,
    Decimal: str,
    UUID: lambda value: value.hex,
}


class JavaRows:
    """Asks Iceberg Java for rows, many questions at a time."""

    def __init__(self, java: IcebergJava) -> None:
        self._ask = java.compiled("Rows", _ROWS)

    def __call__(
        self, table: Any, questions: Sequence[tuple[str | None, int | None]]
    ) -> list[list[str] | None]:
        """Return the rows for each filter and snapshot, as `text_of` says them; None where Java fails.

        It does so on a null partition.
        """
        asked = [
            [filter or EVERYTHING, "" if at is None else str(at), filter is None or turn <= _OPENED]
            for turn, (filter, at) in enumerate(questions)
        ]
        told = json.loads(self._ask.apply(table, json.dumps(asked)))
        rows = [text_of(each) for each in told["rows"]]
        return [
            None if answer is None else [rows[number] for number in answer]
            for answer in told["answers"]
        ]


#: For the compiler that Spark brings along, which knows no generics.
_ROWS = """
import java.time.*;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.*;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.types.Types;

public class Rows implements java.util.function.BiFunction {
  // The rows of files that were read before, with the same deletes and the same columns.
  private Map known = new HashMap();
  // Every row that was read, as it is told; answers have their numbers.
  private List told = new ArrayList();
  // What a scan without a filter plans of a snapshot.
  private Map whole = new HashMap();
  private java.lang.reflect.Constructor reader;
  private java.lang.reflect.Method open;

  public Object apply(Object given, Object asked) {
    try {
      Class type = Class.forName("org.apache.iceberg.data.GenericReader");
      reader = type.getDeclaredConstructor(new Class[] {TableScan.class, boolean.class});
      reader.setAccessible(true);
      open = type.getMethod("open", new Class[] {FileScanTask.class});
      open.setAccessible(true);
      known.clear();
      whole.clear();
      told.clear();
      ObjectMapper json = new ObjectMapper();
      List answers = new ArrayList();
      Iterator questions = ((List) json.readValue((String) asked, List.class)).iterator();
      while (questions.hasNext()) answers.add(answer((Table) given, (List) questions.next()));
      Map all = new HashMap();
      all.put("rows", told);
      all.put("answers", answers);
      return json.writeValueAsString(all);
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  private List answer(Table table, List asked) throws Exception {
    Expression filter = ExpressionParser.fromJson((String) asked.get(0), table.schema());
    try {
      if (((Boolean) asked.get(2)).booleanValue()) return read(table, filter, (String) asked.get(1));
      return planned(table, filter, (String) asked.get(1));
    } catch (NullPointerException error) {
      if (!Ask.isOfExpressions(error)) throw error;
      return null;
    }
  }

  private List read(Table table, Expression filter, String at) throws Exception {
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table);
    if (!at.isEmpty()) scan = scan.useSnapshot(Long.parseLong(at));
    return all(scan.where(filter).build());
  }

  private List all(CloseableIterable found) throws Exception {
    List rows = new ArrayList();
    Iterator each = found.iterator();
    while (each.hasNext()) rows.add(numbered(each.next()));
    found.close();
    return rows;
  }

  private Integer numbered(Object row) {
    told.add(spoken(row));
    return Integer.valueOf(told.size() - 1);
  }

  private List planned(Table table, Expression filter, String at) throws Exception {
    List rows = new ArrayList();
    if (!whole.containsKey(at)) whole.put(at, tasks(scan(table, at)));
    TableScan scan = (TableScan) scan(table, at).filter(filter);
    Iterator tasks = tasks(scan).entrySet().iterator();
    while (tasks.hasNext()) {
      Map.Entry each = (Map.Entry) tasks.next();
      FileScanTask task = (FileScanTask) each.getValue();
      Object unfiltered = ((Map) whole.get(at)).get(each.getKey());
      if (unfiltered == null) rows.addAll(all(opened(scan, task)));
      else rows.addAll(left(rowsOf(scan, unfiltered, at + each.getKey()), task.residual()));
    }
    return rows;
  }

  private TableScan scan(Table table, String at) {
    TableScan scan = table.newScan();
    return at.isEmpty() ? scan : scan.useSnapshot(Long.parseLong(at));
  }

  // A scan's tasks by file and deletes.
  private Map tasks(TableScan scan) {
    Map found = new HashMap();
    Iterator tasks = scan.planFiles().iterator();
    while (tasks.hasNext()) {
      FileScanTask task = (FileScanTask) tasks.next();
      StringBuilder key = new StringBuilder(((DataFile) task.file()).location());
      Set named = new TreeSet();
      Iterator deletes = task.deletes().iterator();
      while (deletes.hasNext()) {
        DeleteFile one = (DeleteFile) deletes.next();
        named.add(one.location() + " " + one.contentOffset());
      }
      if (found.put(key.append(named).toString(), task) != null) {
        throw new IllegalStateException("planned twice: " + key);
      }
    }
    return found;
  }

  private CloseableIterable opened(TableScan scan, Object task) throws Exception {
    Object made = reader.newInstance(new Object[] {scan, Boolean.FALSE});
    return (CloseableIterable) open.invoke(made, new Object[] {task});
  }

  private List rowsOf(TableScan scan, Object task, String key) throws Exception {
    List found = (List) known.get(key);
    if (found != null) return found;
    found = new ArrayList();
    CloseableIterable rows = opened(scan, task);
    Iterator each = rows.iterator();
    while (each.hasNext()) {
      Object one = each.next();
      found.add(new Object[] {one, numbered(one)});
    }
    rows.close();
    known.put(key, found);
    return found;
  }

  private List left(List records, Expression residual) {
    List rows = new ArrayList();
    if (records.isEmpty()) return rows;
    Types.StructType type = ((Record) ((Object[]) records.get(0))[0]).struct();
    // Binding a filter takes far longer than asking it of a row.
    Evaluator bound = new Evaluator(type, residual, true);
    InternalRecordWrapper wrapper = new InternalRecordWrapper(type);
    for (int at = 0; at < records.size(); at++) {
      Object[] pair = (Object[]) records.get(at);
      if (bound.eval(wrapper.wrap((Record) pair[0]))) rows.add(pair[1]);
    }
    return rows;
  }

  private Object spoken(Object value) {
    if (value instanceof Record) {
      Record record = (Record) value;
      Map named = new LinkedHashMap();
      Iterator fields = record.struct().fields().iterator();
      while (fields.hasNext()) {
        String name = ((Types.NestedField) fields.next()).name();
        // Positions come along where deletes needed them.
        if (!MetadataColumns.isMetadataColumn(name)) named.put(name, spoken(record.getField(name)));
      }
      return named;
    }
    if (value instanceof List) {
      List all = new ArrayList();
      Iterator each = ((List) value).iterator();
      while (each.hasNext()) all.add(spoken(each.next()));
      return all;
    }
    if (value instanceof Map) {
      List pairs = new ArrayList();
      Map sorted = new TreeMap();
      sorted.putAll((Map) value);
      Iterator each = sorted.entrySet().iterator();
      while (each.hasNext()) {
        Map.Entry pair = (Map.Entry) each.next();
        List both = new ArrayList();
        both.add(spoken(pair.getKey()));
        both.add(spoken(pair.getValue()));
        pairs.add(both);
      }
      return pairs;
    }
    if (value instanceof Float) return Double.valueOf(((Float) value).doubleValue());
    if (value instanceof OffsetDateTime) {
      return micros(((OffsetDateTime) value).toInstant());
    }
    if (value instanceof LocalDateTime) {
      return micros(((LocalDateTime) value).toInstant(ZoneOffset.UTC));
    }
    if (value instanceof LocalTime) return Long.valueOf(((LocalTime) value).toNanoOfDay() / 1000L);
    if (value instanceof byte[]) return Ask.hex(java.nio.ByteBuffer.wrap((byte[]) value));
    if (value instanceof java.nio.ByteBuffer) return Ask.hex((java.nio.ByteBuffer) value);
    if (value instanceof UUID) return value.toString().replace("-", "");
    if (value == null || value instanceof Number && !(value instanceof java.math.BigDecimal)) {
      return value;
    }
    return value instanceof Boolean ? value : value.toString();
  }

  private Object micros(Instant at) {
    return Long.valueOf(at.getEpochSecond() * 1000000L + at.getNano() / 1000);
  }
}
"""
