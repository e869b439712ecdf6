"""Folders of Parquet files as tables: rows as they are, no file copied, nothing half made."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from icetree.errors import AlreadyExists, CorruptTable, InvalidInput, NotFound
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.moving.old_tables import everything, lake_on

Make = Callable[..., Table]


def _snapshot(lake: Lake, name: str, source: str, **how: Any) -> Table:
    return lake.snapshot_table(name, source, **how)


def _migrate(lake: Lake, name: str, source: str, **how: Any) -> Table:
    return lake.migrate_table(name, source, **how)


BOTH = pytest.mark.parametrize("make", [_snapshot, _migrate])


def all_types() -> pa.Table:
    """Return a row of every type that Parquet files have, and a row of nulls."""
    when = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.timezone.utc)
    columns: dict[str, tuple[Any, pa.DataType]] = {
        "i8": (1, pa.int8()),
        "i32": (2, pa.int32()),
        "u32": (2**32 - 1, pa.uint32()),
        "i64": (3, pa.int64()),
        "f32": (1.5, pa.float32()),
        "f64": (2.5, pa.float64()),
        "b": (True, pa.bool_()),
        "s": ("text", pa.string()),
        "x": (b"\x00\x01", pa.binary()),
        "fixed": (b"1234", pa.binary(4)),
        "d": (dt.date(2024, 5, 6), pa.date32()),
        "t": (dt.time(1, 2, 3), pa.time64("us")),
        "ts": (when.replace(tzinfo=None), pa.timestamp("us")),
        "tz": (when, pa.timestamp("us", "UTC")),
        "dec": (Decimal("12.34"), pa.decimal128(9, 2)),
        "l": ([1, None, 3], pa.list_(pa.int64())),
        "m": ([("a", 1)], pa.map_(pa.string(), pa.int64())),
        "st": ({"a": 1, "b": {"c": "d"}}, pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])),
    }  # fmt: skip
    return pa.table(
        {name: pa.array([value, None], type) for name, (value, type) in columns.items()}
    )


def hive(folder: Path) -> Path:
    """Write a folder that is parted by text, number and date, with nulls and odd letters."""
    place = folder / "hive"
    table = pa.table(
        {
            "id": list(range(8)),
            "country": ["DE", "DE", "a b/c=d", None, "DE", "FR", "FR", "01"],
            "day": [dt.date(2024, 1, 1 + at % 3) for at in range(8)],
            "n": [1, 2, 1, 2, None, 1, 2, 1],
        },
        schema=pa.schema(
            [("id", pa.int64()), ("country", pa.string()), ("day", pa.date32()), ("n", pa.int32())]
        ),
    )
    pq.write_to_dataset(table, place, partition_cols=["country", "n", "day"])
    (place / "_SUCCESS").touch()
    (place / ".part.crc").write_text("crc")
    return place


def told(table: pa.Table, by: str = "id") -> list[Any]:
    return table.sort_by(by).to_pylist()


@BOTH
def test_a_folder_of_every_type_has_the_same_rows_as_its_files(tmp_path: Path, make: Make) -> None:
    place = tmp_path / "plain"
    place.mkdir()
    pq.write_table(all_types(), place / "one.parquet")
    pq.write_table(all_types(), place / "without_a_suffix")
    before = everything(place)
    with lake_on(tmp_path) as lake:
        table = make(lake, "new.t", str(place))
        want = pa.concat_tables([all_types(), all_types()]).to_pylist()
        assert sorted(map(str, table.scan().to_arrow().to_pylist())) == sorted(map(str, want))
        assert table.scan("i64 = 3").count() == 2
        assert table.scan("i64 = 4").plan().tasks.num_rows == 0
        assert table.verify(deep=True).findings == ()
    assert everything(place).items() >= before.items()


@BOTH
def test_folders_tell_columns_with_types(tmp_path: Path, make: Make) -> None:
    place = hive(tmp_path)
    with duckdb.connect() as peer:
        theirs = peer.sql(
            f"select id, country, day, n from read_parquet('{place}/**/*.parquet', "
            "hive_partitioning=true, hive_types={'n': int, 'day': date, 'country': varchar})"
        ).to_arrow_table()
    before = everything(place)
    with lake_on(tmp_path) as lake:
        table = make(lake, "new.t", str(place))
        types = {field.name: str(field.field_type) for field in table.schema.fields}
        assert types == {"id": "long", "country": "string", "n": "int", "day": "date"}
        assert table.spec == ("country", "n", "day")
        ours = table.scan(columns=["id", "country", "day", "n"]).to_arrow()
        assert told(ours) == told(theirs)
        assert ours.filter(pa.compute.is_null(ours["country"])).num_rows == 1
        assert table.scan("country = 'a b/c=d'").count() == 1
        # It can be written to like any other, and rows of its files deleted.
        table.append(pa.table({"id": [100], "country": ["XX"], "n": [1]}).cast(
            pa.schema([("id", pa.int64()), ("country", pa.string()), ("n", pa.int32())])
        ))  # fmt: skip
        table.delete("id = 5")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 6, 7, 100]
        assert table.verify(deep=True).findings == ()
    assert everything(place).items() >= before.items()


@BOTH
@pytest.mark.parametrize("type", [pa.float32(), pa.float64()])
def test_a_folder_may_be_of_nan_which_is_not_null(
    tmp_path: Path, make: Make, type: pa.DataType
) -> None:
    place = tmp_path / "floats"
    for text in ("NaN", "1.5", "-0.0", "__HIVE_DEFAULT_PARTITION__"):
        (place / f"p={text}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [text]}), place / f"p={text}" / "x.parquet")
    schema = pa.schema([("v", pa.string()), ("p", type)])
    with lake_on(tmp_path) as lake:
        table = make(lake, "new.t", str(place), schema=schema)
        values = {row["v"]: repr(row["p"]) for row in table.scan().to_arrow().to_pylist()}
        assert values == {
            "NaN": "nan",
            "1.5": "1.5",
            "-0.0": "-0.0",
            "__HIVE_DEFAULT_PARTITION__": "None",
        }
        for where, found in (("p is nan", "NaN"), ("p is null", "__HIVE_DEFAULT_PARTITION__")):
            assert table.scan(where).to_arrow()["v"].to_pylist() == [found]
        assert table.verify(deep=True).findings == ()


def test_a_text_that_says_null_is_a_text(tmp_path: Path) -> None:
    """Hive has one word for what is null, and so do engines that read such folders."""
    place = tmp_path / "names"
    for text in ("null", "NULL", "Smith", "__HIVE_DEFAULT_PARTITION__"):
        (place / f"name={text}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [text]}), place / f"name={text}" / "x.parquet")
    with duckdb.connect() as peer:
        theirs = peer.sql(f"select v, name from read_parquet('{place}/**/*.parquet')").fetchall()
    with lake_on(tmp_path) as lake:
        ours = lake.snapshot_table("new.t", str(place)).scan(columns=["v", "name"]).to_arrow()
        assert sorted(map(str, ours.to_pylist())) == sorted(
            str({"v": v, "name": name}) for v, name in theirs
        )


def test_a_snapshot_never_deletes_a_file_of_its_source(tmp_path: Path) -> None:
    place = hive(tmp_path)
    before = everything(place)
    with lake_on(tmp_path) as lake:
        table = lake.snapshot_table("new.t", str(place))
        table.truncate()
        done = table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
        assert len(done.snapshot_ids) == 1
        lake.drop_table("new.t", purge=True)
    assert everything(place) == before


def test_a_migrated_folder_is_the_tables_own(tmp_path: Path) -> None:
    place = hive(tmp_path)
    with lake_on(tmp_path) as lake:
        table = lake.migrate_table("new.t", str(place))
        assert table.location == str(place)
        table.truncate()
        table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
        assert not list(place.rglob("country=*/*.parquet"))


def test_files_that_differ_in_columns_and_widths_become_one_table(tmp_path: Path) -> None:
    place = tmp_path / "grown"
    place.mkdir()
    narrow = pa.schema([("id", pa.int32()), ("p", pa.float32()), ("d", pa.decimal128(5, 2))])
    wide = pa.schema([("id", pa.int64()), ("p", pa.float64()), ("d", pa.decimal128(9, 2)), ("more", pa.string())])  # fmt: skip
    pq.write_table(pa.table([[1], [0.5], [Decimal("1.25")]], schema=narrow), place / "a.parquet")
    pq.write_table(
        pa.table([[2**40], [0.25], [Decimal("1234567.25")], ["x"]], schema=wide),
        place / "b.parquet",
    )
    with lake_on(tmp_path) as lake:
        table = lake.snapshot_table("new.t", str(place))
        assert told(table.scan().to_arrow()) == [
            {"id": 1, "p": 0.5, "d": Decimal("1.25"), "more": None},
            {"id": 2**40, "p": 0.25, "d": Decimal("1234567.25"), "more": "x"},
        ]


def test_times_that_are_points_in_time_by_custom_are_read_as_such(tmp_path: Path) -> None:
    place = tmp_path / "old"
    place.mkdir()
    when = dt.datetime(2024, 5, 6, 7, 8, 9)  # noqa: DTZ001
    pq.write_table(
        pa.table({"at": pa.array([when], pa.timestamp("us"))}),
        place / "a.parquet",
        use_deprecated_int96_timestamps=True,
    )
    with lake_on(tmp_path) as lake:
        table = lake.snapshot_table("new.t", str(place))
        assert str(table.schema.fields[0].field_type) == "timestamptz"
        assert table.scan().to_arrow()["at"].to_pylist() == [when.replace(tzinfo=dt.timezone.utc)]


def _clashing(place: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), place / "a.parquet")
    pq.write_table(pa.table({"id": ["x"]}), place / "b.parquet")


def _differently_parted(place: Path) -> None:
    for folder in ("a=1", "b=1"):
        (place / folder).mkdir()
        pq.write_table(pa.table({"id": [1]}), place / folder / "a.parquet")


def _no_parquet(place: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), place / "a.parquet")
    (place / "notes.txt").write_text("no rows here")


def _with_ids(place: Path) -> None:
    field = pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"7"})
    pq.write_table(pa.table([[1]], schema=pa.schema([field])), place / "a.parquet")


def _of_iceberg(place: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), place / "a.parquet")
    (place / "metadata").mkdir()
    (place / "metadata" / "v1.metadata.json").write_text(json.dumps({}))


@BOTH
@pytest.mark.parametrize(
    ("fill", "why"),
    [
        (_clashing, "id is int64 in .*a.parquet and string in .*b.parquet"),
        (_differently_parted, r"is in folders \['a'\] and .* in \['b'\]"),
        (_no_parquet, "notes.txt is no Parquet file"),
        (_with_ids, "has field ids"),
        (_of_iceberg, "is a table of Iceberg's"),
        (lambda _: None, "has no Parquet files"),
    ],
)
def test_a_folder_that_is_no_table_is_refused_and_nothing_is_written(
    tmp_path: Path, make: Make, fill: Callable[[Path], None], why: str
) -> None:
    place = tmp_path / "bad"
    place.mkdir()
    fill(place)
    with lake_on(tmp_path) as lake:
        before = everything(place), everything(tmp_path / "ours")
        with pytest.raises((InvalidInput, NotFound), match=why):
            make(lake, "new.t", str(place))
        assert (everything(place), everything(tmp_path / "ours")) == before
        assert not lake.table_exists("new.t")


@BOTH
def test_a_dry_run_gives_the_table_as_it_would_be_and_writes_nothing(
    tmp_path: Path, make: Make
) -> None:
    place = hive(tmp_path)
    with lake_on(tmp_path) as lake:
        before = everything(tmp_path)
        would = make(lake, "new.t", str(place), dry_run=True)
        assert everything(tmp_path).keys() == before.keys()
        assert not lake.table_exists("new.t")
        rows = told(would.scan().to_arrow())
        make(lake, "elsewhere.t", str(place), dry_run=True)  # the namespace can be made later
        made = make(lake, "new.t", str(place))
        assert told(made.scan().to_arrow()) == rows
        assert made.location == would.location
        with pytest.raises(AlreadyExists):
            make(lake, "new.t", str(place), dry_run=True)
        (place / "country=XX").mkdir()
        (place / "country=XX" / "bad.parquet").write_bytes(b"no Parquet")
        before = everything(tmp_path)
        with pytest.raises(
            (InvalidInput, CorruptTable), match=r"bad\.parquet|country=XX|Iceberg's"
        ):
            make(lake, "new.u", str(place), dry_run=True)
        assert everything(tmp_path).keys() == before.keys()


def test_a_name_that_is_taken_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    place = hive(tmp_path)
    with lake_on(tmp_path) as lake:
        lake.migrate_table("new.t", str(place))
        before = everything(tmp_path)
        with pytest.raises(AlreadyExists):
            lake.snapshot_table("new.t", str(place))
        with pytest.raises(NotFound, match="nowhere"):
            lake.snapshot_table("nowhere.t", str(place))
        assert everything(tmp_path).keys() == before.keys()


@BOTH
def test_cut_off_at_any_write_there_is_no_table_or_a_whole_one_without_a_name(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And who asks again gets it, or is told by which file to register it."""
    write_new = LocalStore.write_new
    for cut in range(4):
        place = hive(tmp_path / str(cut))
        rows = told(ds.dataset(place, partitioning="hive").to_table(columns=["id"]))
        writes = []

        def dying(store: LocalStore, location: str, content: bytes, cut: int = cut, writes: list[str] = writes) -> None:  # fmt: skip
            if len(writes) == cut:
                raise KeyboardInterrupt
            writes.append(location)
            write_new(store, location, content)

        with lake_on(tmp_path) as lake:
            with monkeypatch.context() as patch:
                patch.setattr(LocalStore, "write_new", dying)
                patch.setattr(lake.catalog, "create", _killed)
                # A process that is killed cleans nothing up.
                patch.setattr(LocalStore, "delete", lambda *_: None)
                with pytest.raises(KeyboardInterrupt):
                    make(lake, f"new.t{cut}", str(place))
            try:
                table = make(lake, f"new.t{cut}", str(place))
            except InvalidInput as error:
                at = str(error).partition(" is there")[0]
                table = lake.register_table(f"new.t{cut}", at)
            assert told(table.scan(columns=["id"]).to_arrow()) == rows
            assert table.verify(deep=True).findings == ()


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
