"""A property that could not be meant is refused when it is set, in every door."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icetree
from icetree.cli.main import cli
from icetree.errors import InvalidInput
from icetree.spec.entry.metrics import COLUMN_PREFIX
from icetree.table.lake import Lake
from icetree.table.properties import KNOWN

SCHEMA = pa.schema([("n", pa.int64()), ("name", pa.string())])
DOCS = Path(__file__).parents[2] / "docs" / "properties.md"

BAD = [
    ("write.root.target-bytes", "much", "whole numbers"),
    ("commit.retry.num-retries", "-1", "whole numbers"),
    ("commit.status-check.min-wait-ms", "1.5", "whole numbers"),
    ("read.split.target-size", "0", "1 or more"),
    ("read.parquet.checksums", "yes", "'true' and 'false'"),
    ("write.files.confined", "1", "'true' and 'false'"),
    ("write.wap.enabled", "", "'true' and 'false'"),
    ("write.target-file-size-bytes", "512MB", "whole numbers"),
    ("write.parquet.row-group-limit", "0", "1 or more"),
    ("write.parquet.compression-codec", "zip", "allowed are zstd"),
    ("write.parquet.compression-level", "23", "allowed for zstd"),
    ("write.metadata.compression-codec", "zstd", "gzip, none"),
    ("write.metadata.previous-versions-max", "0", "1 or more"),
    ("write.metadata.metrics.default", "truncate(0)", "truncate"),
    ("write.metadata.metrics.column.n", "some", "truncate"),
    ("write.metadata.metrics.column.nme", "full", "did you mean 'name'"),
    ("write.delete.mode", "copy", "merge-on-read, copy-on-write"),
    ("write.merge.isolation-level", "none", "serializable"),
    ("write.distribution-mode", "random", "none, hash, range"),
    ("write.data.path", "s3://b/../other", r"'\.\.'"),
    ("write.data.path", "sub/data", "relative.*in full"),
    ("write.data.path", "", "relative.*in full"),
    ("write.metadata.path", "elsewhere", "relative.*in full"),
    ("write.metadata.path", "s3://b/../other", r"'\.\.'"),
    ("schema.name-mapping.default", "{", "name mapping"),
    # Nearly the name of one.
    ("write.target-file-size-byte", "1", "did you mean 'write.target-file-size-bytes'"),
    ("write.parquet.compression_codec", "zstd", "did you mean 'write.parquet.compression-codec'"),
    ("commit.retry.num-retrys", "4", "did you mean 'commit.retry.num-retries'"),
    ("write.files.confine", "true", "did you mean 'write.files.confined'"),
    ("wriet.parquet.compression-codec", "zstd", "did you mean 'write.parquet.compression-codec'"),
    ("Write.Delete.Mode", "copy-on-write", "did you mean 'write.delete.mode'"),
    ("write_delete_mode", "copy-on-write", "did you mean 'write.delete.mode'"),
    ("comit.retry.num-retries", "4", "did you mean 'commit.retry.num-retries'"),
    ("raed.split.target-size", "4", "did you mean 'read.split.target-size'"),
    # Of these families every name is known.
    ("write.orc.compresion-codec", "zstd", "did you mean 'write.orc.compression-codec'"),
    ("write.ORC.compression-codec", "zstd", "did you mean 'write.orc.compression-codec'"),
    ("write.avro.xyz", "1", "there are write.avro.compression-codec, write.avro"),
    ("write.delete.orc.stripe-size", "1", "did you mean 'write.delete.orc.stripe-size-bytes'"),
    ("write.delete.avro.codec", "gzip", "did you mean 'write.delete.avro.compression-codec'"),
    ("wirte.metadata.metric.column.n", "full", "did you mean 'write.metadata.metrics.column.n'"),
]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    return lake


@pytest.mark.parametrize(("name", "value", "says"), BAD)
def test_a_bad_property_is_refused_when_it_is_set_and_at_creation(
    lake: Lake, name: str, value: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=f"{re.escape(name)}.*{says}"):
        lake.create_table("db.t", SCHEMA, properties={name: value})
    assert lake.tables() == []
    table = lake.create_table("db.t", SCHEMA)
    with pytest.raises(InvalidInput, match=f"{re.escape(name)}.*{says}"):
        table.set_properties({name: value})
    with pytest.raises(InvalidInput, match=says), table.transaction() as transaction:
        transaction.set_properties({name: value})
    assert table.refresh().properties == {}


def test_the_command_line_refuses_a_bad_property_too(tmp_path: Path) -> None:
    words = ["--catalog", f"sqlite:///{tmp_path}/c.db", "--warehouse", str(tmp_path)]
    create = ["create", "db.t", "--schema", "n long", "--set", "write.delete.mod=copy-on-write"]
    done = CliRunner().invoke(cli, [*words, *create])
    assert done.exit_code == 1
    assert "did you mean 'write.delete.mode'?" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "owner",
        "comment",
        "team.contact",
        "team.write.mode",
        # Anybody may have settings of the same kind.
        "team.write.delete.mode",
        "parquet.compression-codec",
        "reader.name",
        "commit-message",
        "gcp.enabled",
        "import.on-commit",
        "write.delete.distribution-mode",
        "write.parquet.page-size-bytes",
        "write.orc.bloom.filter.columns",
        "write.delete.avro.compression-codec",
        "read.parquet.vectorization.enabled",
        "write.my-engine.setting",
    ],
)
def test_a_property_of_others_is_kept_as_it_is(lake: Lake, name: str) -> None:
    table = lake.create_table("db.t", SCHEMA, properties={name: "anything"})
    table.set_properties({name: "else"})
    assert lake.table("db.t").properties == {name: "else"}


def test_a_level_is_held_against_the_codec_that_was_set_before(lake: Lake) -> None:
    codec = {"write.parquet.compression-codec": "gzip"}
    table = lake.create_table("db.t", SCHEMA, properties=codec)
    with pytest.raises(InvalidInput, match="allowed for gzip are 0 to 9"):
        table.set_properties({"write.parquet.compression-level": "10"})


def test_statistics_of_a_column_may_come_with_the_column(lake: Lake) -> None:
    table = lake.create_table("db.t", SCHEMA)
    with table.transaction() as transaction:
        with transaction.edit_schema() as schema:
            schema.add("later", "string")
        transaction.set_properties({f"{COLUMN_PREFIX}later": "full"})
        transaction.commit()
    assert table.refresh().properties[f"{COLUMN_PREFIX}later"] == "full"


def test_what_others_have_set_keeps_nobody_from_setting_something_else(lake: Lake) -> None:
    table = lake.create_table("db.t", SCHEMA)
    table.metadata.properties["write.delete.mode"] = "copy"
    table.set_properties({"write.update.mode": "copy-on-write"})


def test_every_property_is_told_in_the_documentation() -> None:
    told = set(
        re.findall(
            r"`((?:write|commit|read|schema|encryption|history|gc|export)\.[a-z0-9.-]+)`",
            DOCS.read_text(),
        )
    )
    assert told == KNOWN
