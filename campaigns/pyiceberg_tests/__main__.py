"""PyIceberg's own integration tests of its REST catalog, run against `icetree serve`.

The tests come from PyIceberg's source package, fetched once into `.venv`, and run in a Python of their
own with a stock PyIceberg. They talk to `icetree serve` over a SQLite catalog with files on an S3
server, and to Spark with Iceberg Java, which has nothing of icetree but the server's address. Some do
not apply, and some are known to differ: `expected.py` lists each with its reason. Any other failure
is wrong, and so is a listed test that passes.

    python -m campaigns.pyiceberg_tests --python .venv/pyiceberg-tests/bin/python
    python -m campaigns.pyiceberg_tests --python … --quick
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from campaigns.pyiceberg_tests.run import run
from campaigns.pyiceberg_tests.shipped import unpacked

#: Beside the Python that runs the tests; nothing here is of the repository.
BUILD = Path(__file__).parents[2] / ".venv" / "pyiceberg-tests" / "shipped"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", required=True, help="which has what the tests need")
    parser.add_argument("--quick", action="store_true", help="tests of the catalog, without Spark")
    parser.add_argument("tests", nargs="*", help="for pytest, instead of all: tests/integration/…")
    options = parser.parse_args()
    source = unpacked(BUILD)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=BUILD))
    started = time.monotonic()
    python = str(Path(options.python).absolute())
    verdict = run(source, python, folder, quick=options.quick, asked=options.tests)
    print(f"{source.name}: {verdict.passed} passed, {time.monotonic() - started:.0f} s")
    _show(verdict.differ, "differ as they are known to")
    _show(verdict.left_out, "are left out")
    for each in verdict.wrong:
        print(f"WRONG: {each}")
    if verdict.wrong:
        print(f"{len(verdict.wrong)} things are wrong; logs are in {folder}")
        return 1
    shutil.rmtree(folder)
    print("all is as expected")
    return 0


def _show(reasons: Counter[str], what: str) -> None:
    print(f"{reasons.total()} {what}:")
    for reason, many in reasons.most_common():
        print(f"{many:>6}  {reason}")


if __name__ == "__main__":
    sys.exit(main())
