"""A long life of one table: thousands of commits by several writers, with trouble at random.

Writers are processes of a few threads each; every thread appends, deletes, adds DVs and rewrites, on
files of its own. Writers are ended by SIGKILL at random and start again. On disk, the store and the
catalog fail now and then; on servers, PostgreSQL is frozen, restarted, crashed and failed over to its
standby, and a proxy before S3 cuts, delays, stalls and answers 500 and 503. At the end the table must
hold what the writers' journals say, `verify` must find nothing, and memory must not have grown.

    python -m campaigns.soak --commits 10000
    python -m campaigns.soak --commits 2000 --on postgres --on s3
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from campaigns.soak.run import soak
from campaigns.soak.servers import on_disk, on_servers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--on", choices=("postgres", "s3"), action="append", help="a real server")
    parser.add_argument("--faults", type=float, default=0.003, help="share of requests that fail")
    parser.add_argument(
        "--every", type=float, default=10, help="seconds between PostgreSQL's faults"
    )
    parser.add_argument("--keep", action="store_true", help="leave the table for inspection")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="icetree-soak-"))
    try:
        if options.on:
            with on_servers(folder, {*options.on}, options.faults) as ground:
                wrong = soak(ground, options.commits, options.every)
        else:
            wrong = soak(on_disk(folder, options.faults), options.commits, options.every)
    finally:
        if options.keep:
            print(f"the table is in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for each in wrong[:20]:
        print(f"WRONG: {each}")
    print("all is well" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
