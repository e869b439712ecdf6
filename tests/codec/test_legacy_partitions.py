"""Partition tuples of old manifests, which become stats of expressions."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.types import (
    IntegerType,
)

from icetree.codec.inherit import Inherited
from icetree.codec.legacy import decode_manifest
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from tests.codec.avro_manifests import entry, field, manifest, pairs
from tests.codec.legacy_shape import (
    ADDED_LEAF,
    BY_BUCKET_AND_NAME,
    DATA,
    SCHEMA,
    TABLE,
    decode,
    values,
)


def test_a_partition_tuple_is_exact_stats_of_its_expressions() -> None:
    truncated = pairs({2: b"a"})
    data = manifest(
        2,
        entry(
            f"{DATA}/a",
            rows=4,
            partition={"id_bucket": 3, "name": "a long name"},
            lower_bounds=truncated,
            upper_bounds=truncated,
            null_value_counts=pairs({2: 1}),
        ),
        entry(f"{DATA}/b", rows=6, partition={"id_bucket": None, "name": None}),
        partition=BY_BUCKET_AND_NAME,
        spec_id=1,
    )
    entries = decode(data)
    assert values(entries, "partition_spec_id") == [1, 1]
    for id, value in ((10, 3), (2, "a long name")):
        assert values(entries, f"{id}:lower") == [value, None]
        assert values(entries, f"{id}:upper") == [value, None]
        assert values(entries, f"{id}:tight") == [True, None]
        assert values(entries, f"{id}:values") == [4, 6]
        assert values(entries, f"{id}:nulls") == [0, 6]


def test_a_nan_partition_has_no_bounds_but_all_its_values_are_nan() -> None:
    tuples = [{"score": float("nan"), "id_gone": None}, {"score": 1.5, "id_gone": None}]
    data = manifest(
        2,
        *(entry(f"{DATA}/{at}", partition=each) for at, each in enumerate(tuples)),
        partition=(field(1002, "score", "double"), field(1003, "id_gone", "int")),
        spec_id=2,
    )
    entries = decode(data)
    assert values(entries, "3:lower") == [None, 1.5]
    assert values(entries, "3:nans") == [10, 0]
    assert values(entries, "3:nulls") == [0, 0]
    assert not [name for name in entries.column_names if name.startswith("13:")]


def test_partition_fields_are_found_by_id_whatever_their_order_and_names() -> None:
    swapped = (field(1001, "was_name", "string"), field(1000, "was_bucket", "int"))
    data = manifest(
        2,
        entry(f"{DATA}/a", partition={"was_bucket": 3, "was_name": "x"}),
        partition=swapped,
        spec_id=1,
    )
    entries = decode(data)
    assert (values(entries, "10:lower"), values(entries, "2:lower")) == ([3], ["x"])


def test_v1_partition_fields_without_known_ids_are_taken_in_order() -> None:
    fields = (field(2000, "id_bucket", "int"), field(2001, "name", "string"))
    data = manifest(
        1,
        entry(f"{DATA}/a", snapshot_id=1, partition={"id_bucket": 3, "name": "x"}),
        partition=fields,
        spec_id=1,
    )
    entries = decode(data)
    assert (values(entries, "10:lower"), values(entries, "2:lower")) == ([3], ["x"])


def test_the_manifests_own_spec_decides_how_its_tuples_are_read() -> None:
    data = manifest(
        2,
        entry(f"{DATA}/a", partition={"id_bucket": 3, "name": "x"}),
        partition=BY_BUCKET_AND_NAME,
        spec_id=1,
    )
    leaf = Inherited(snapshot_id=7, sequence_number=5, partition_spec_id=0)
    assert values(decode(data, leaf), "partition_spec_id") == [1]


def test_dates_beyond_the_calendar_of_python_are_read() -> None:
    day = Expression(
        expr_id=10, source_ids=(4,), transform="day", name="day", partition_field_id=1000
    )
    shape = Shape(schema=SCHEMA, expressions={10: day}, specs={0: (10,)})
    date_field = field(1000, "day", {"type": "int", "logicalType": "date"})
    data = manifest(2, entry(f"{DATA}/a", partition={"day": 4_000_000}), partition=(date_field,))
    entries = decode_manifest(
        data, file="m.avro", shape=shape, table_location=TABLE, inherit=ADDED_LEAF
    )
    assert entries["10:lower"].cast(pa.int32()).to_pylist() == [4_000_000]


def test_an_int_column_that_became_long_reads_its_old_partition_values() -> None:
    id_ = Expression(
        expr_id=10, source_ids=(1,), transform="identity", name="id", partition_field_id=1000
    )
    shape = Shape(schema=SCHEMA, expressions={10: id_}, specs={0: (10,)})
    assert shape.types[1] != IntegerType()
    data = manifest(
        2, entry(f"{DATA}/a", partition={"id": 4}), partition=(field(1000, "id", "int"),)
    )
    entries = decode_manifest(
        data, file="m.avro", shape=shape, table_location=TABLE, inherit=ADDED_LEAF
    )
    assert entries["1:lower"].to_pylist() == [4]
    assert entries.schema.field("1:lower").type == pa.int64()
