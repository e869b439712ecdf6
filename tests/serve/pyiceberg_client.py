"""A program: stock PyIceberg without keys, whose requests to S3 the server signs.

It runs by itself because PyIceberg reads how many threads it may have when it starts, and because what
signs in it (s3fs) wants other packages than ours. Arguments: the server's address, a table's name. It
tells on standard output, as JSON, the ids it reads: as the table is, after an append, after a delete.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog


def main(uri: str, name: str) -> None:
    """Read, append and delete."""
    catalog = RestCatalog(
        "lake",
        uri=uri,
        **{
            "header.X-Iceberg-Access-Delegation": "remote-signing",
            "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        },
    )

    def ids() -> list[int]:
        return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())

    told = [ids()]
    catalog.load_table(name).append(pa.table({"id": pa.array([11, 12, 13], pa.int64())}))
    told.append(ids())
    catalog.load_table(name).delete("id in (2, 12)")
    told.append(ids())
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
