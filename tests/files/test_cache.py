"""How much of manifests a connection keeps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icetree
from icetree.errors import InvalidInput
from icetree.table.lake import CACHE_BYTES


def test_a_connection_keeps_no_more_than_it_is_told(tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    for most in (0, 1 << 20):
        uri = f"sqlite:///{tmp_path}/{most}.db"
        with icetree.connect(uri, warehouse=place, properties={CACHE_BYTES: most}) as lake:
            lake.create_namespace("db")
            table = lake.create_table("db.t", [("id", "long")], location=str(tmp_path / str(most)))
            table.append(pa.table({"id": [1]}))
            assert table.scan().count() == 1
            assert (lake.manifests._size_bytes > 0) is (most > 0)


@pytest.mark.parametrize("wrong", ["many", -1])
def test_a_limit_that_is_no_number_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InvalidInput, match=CACHE_BYTES):
        icetree.connect(f"sqlite:///{tmp_path}/c.db", properties={CACHE_BYTES: wrong})
