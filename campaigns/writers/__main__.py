"""Many writers as processes of their own, on a catalog of each kind.

python -m campaigns.writers --writers 16 --commits 1000 --on sqlite
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from campaigns.writers.run import run
from tests.servers.postgres import PostgresServer

CATALOGS = ("sqlite", "postgres")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--on", choices=CATALOGS, action="append", help="a catalog; both without")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--commits", type=int, default=1_000, help="of each writer")
    parser.add_argument("--threads", action="store_true", help="of one process, for a quick look")
    parser.add_argument("--minutes", type=float, default=120, help="when to give up")
    options = parser.parse_args()
    status = 0
    for kind in options.on or CATALOGS:
        folder = Path(tempfile.mkdtemp(prefix=f"icetree-writers-{kind}-"))
        server = PostgresServer() if kind == "postgres" else None
        try:
            if server is not None:
                server.start()
            uri = f"sqlite:///{folder}/catalog.db" if server is None else server.new_schema()
            told, wrong = run(
                uri, folder, writers=options.writers, commits=options.commits,
                give_up_s=options.minutes * 60, in_threads=options.threads,
            )  # fmt: skip
        finally:
            if server is not None:
                server.remove()
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{kind}: {told}", flush=True)
        for each in wrong[:20]:
            print(f"WRONG: {each}")
        print("all is well" if not wrong else f"{len(wrong)} things are wrong", flush=True)
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main())
