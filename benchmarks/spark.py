"""The data itself on Spark: scans, aggregates, appends, deletes, merges, many files.

Beside icetree, in the same run and on the same data: plain Parquet, Iceberg Java's Spark runtime
(format 3, merge on read) and Delta's connector (deletion vectors). Each has a process with a
Java virtual machine of its own and the same settings; they take turns, so that a busy machine
slows all of them. A figure is the median of its rounds, after one that does not count; CPU time
is of all processes of a system.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import IO, Any, Final

from benchmarks import spark_data, spark_far, spark_memory
from benchmarks.harness import Report, Timing, main
from benchmarks.spark_data import SHARE
from benchmarks.spark_systems import FAR

REPOSITORY: Final = Path(__file__).parents[1]
OURS, PLAIN, JAVA, DELTA = "icetree", "Parquet", "Iceberg Java", "Delta"
#: Where `make bench-spark` says the jars of each are.
_JARS: Final = {JAVA: "ICEBERG_JAR", DELTA: "DELTA_JARS"}
#: Spark's own reader, on our files.
_SAME: Final = "Parquet, our files"
#: Those that find files by statistics of their own, and take deletes by keys.
_TREES: Final = (OURS, JAVA)
#: How many files are read of very many.
_READ: Final = 10
#: What is deleted before the scans: one in a thousand, then up to one in twenty.
_FEW, _SOME = "id % 1000 = 0", "id % 1000 BETWEEN 1 AND 49"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything."""

    rows: int
    appended: int
    files: int
    wide: int
    far: int
    tree: int
    rounds: int


FULL: Final = Sizes(
    rows=20_000_000,
    appended=2_000_000,
    files=10_000,
    wide=1_000_000,
    far=100_000,
    tree=1_000_000,
    rounds=3,
)
QUICK: Final = Sizes(
    rows=1_000_000,
    appended=100_000,
    files=1_000,
    wide=100_000,
    far=10_000,
    tree=100_000,
    rounds=1,
)


class Worker:
    """A system in a process of its own."""

    def __init__(
        self,
        name: str,
        folder: Path,
        log: IO[str],
        *,
        jars: str = "",
        program: str = "spark_worker",
    ) -> None:
        self.name = name
        command = [sys.executable, "-m", f"benchmarks.{program}", name, str(folder), jars]
        self._process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self._log = Path(log.name)

    def ask(self, *words: Any) -> dict[str, Any]:
        """Have something done; return what it took and found."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            told = self._log.read_text()[-3000:]
            raise RuntimeError(f"{self.name} failed at {words[0]}:\n{told}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process and wait for it."""
        self._process.communicate()


@contextmanager
def _workers(folder: Path) -> Iterator[dict[str, Worker]]:
    with ExitStack() as stack:
        made = {}
        for name in (PLAIN, OURS, JAVA, DELTA):
            place = folder / name.replace(" ", "")
            place.mkdir()
            log = stack.enter_context((folder / f"{place.name}.log").open("w"))
            jars = os.environ.get(_JARS.get(name, ""), "")
            made[name] = Worker(name, place, log, jars=jars)
            stack.callback(made[name].close)
        yield made


def measure(report: Report, quick: bool) -> None:
    """Measure everything."""
    missing = [name for name, variable in _JARS.items() if not os.environ.get(variable)]
    if missing:
        sys.exit(f"no jars of {' and '.join(missing)}: run `make bench-spark`, which fetches them")
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _workers(folder) as workers:
            _Run(report, workers, sizes, folder).all()
        spark_memory.measure(report, folder, sizes.tree)


class _Run:
    """The systems at work, one line of the report after the other."""

    def __init__(
        self, report: Report, workers: Mapping[str, Worker], sizes: Sizes, folder: Path
    ) -> None:
        self.report, self.workers, self.sizes = report, workers, sizes
        self.events, self.more, self.many = (str(folder / n) for n in ("events", "more", "many"))
        self.merged, self.wide = str(folder / "merged"), str(folder / "wide")
        self.keys, self.far, self.parts = (folder / n for n in ("keys.parquet", "far", "parts"))

    def all(self) -> None:
        """Do everything, in an order in which each table is as its line says."""
        self._make()
        self._appends()
        self._load()
        self._scans("0 %")
        for share, where in {"0.1 %": _FEW, "5 %": _SOME}.items():
            self._each("delete", "t", where)
            self._scans(share)
        self._each("reset", "t")
        self._changes()
        self._keys()
        self._wide()
        self._many()
        self._far()

    def _make(self) -> None:
        sizes = self.sizes
        self.report.tell(f"making {sizes.rows:,} events and {sizes.files:,} small files")
        spark_data.write_events(Path(self.events), 0, sizes.rows)
        spark_data.write_events(Path(self.more), sizes.rows, sizes.appended)
        spark_data.write_merge(Path(self.merged), sizes.rows, seed=7)
        spark_data.write_many(Path(self.many), sizes.files)
        spark_data.write_wide(Path(self.wide), sizes.wide)
        spark_data.write_keys(self.keys, sizes.rows, seed=52)

    def _load(self) -> None:
        self.report.tell(f"loading {self.sizes.rows:,} events")
        for worker in self.workers.values():
            worker.ask("create", "t", False)
            worker.ask("append", "t", self.events)
        self._each("keep", "t")

    def _appends(self) -> None:
        for case, name, by_day in (("append", "a", False), ("partitioned append", "p", True)):
            for worker in self.workers.values():
                worker.ask("create", name, by_day)
            took = self._rounds(_asking("append", name, self.more))
            self._tell(f"{case} of {self.sizes.appended:,} rows", took)

    def _scans(self, share: str) -> None:
        clean = share == "0 %"
        names = list(self.workers) if clean else self._deleting
        for verb, case in (("scan", "scan"), ("aggregate", "narrow aggregate")):
            more = {_SAME: partial(self.workers[OURS].ask, f"{verb}_same", "t")} if clean else {}
            took = self._rounds(_asking(verb, "t"), names, more)
            title = f"{case}, {share} deleted"
            self._tell(title, took)
            if clean and verb == "scan":
                for peer in (PLAIN, _SAME):
                    ratio = took[OURS].wall_ms / took[peer].wall_ms
                    self.report.at_most(f"{title}, wall over {peer}", ratio, 1.05)

    def _changes(self) -> None:
        for case, words in {
            "DELETE 1 %": ("delete", "t", f"id % {SHARE} = 51"),
            "MERGE 1 %": ("merge", "t", self.merged),
        }.items():
            took = self._rounds(_asking(*words), self._deleting, after=_asking("reset", "t"))
            self._tell(f"{case} of {self.sizes.rows:,} rows", took)

    def _keys(self) -> None:
        for name in _TREES:
            self.workers[name].ask("delete_keys", "t", str(self.keys))
        for verb, case in (("scan", "scan"), ("aggregate", "narrow aggregate")):
            took = self._rounds(_asking(verb, "t"), _TREES)
            self._tell(f"{case}, 1 % deleted by keys", took)
        for name in _TREES:
            self.workers[name].ask("reset", "t")

    def _wide(self) -> None:
        for name in self._deleting:
            self.workers[name].ask("create_wide", "w")
            self.workers[name].ask("append", "w", self.wide)
        self._each("delete", "w", "id % 20 = 3")
        took = self._rounds(_asking("scan_wide", "w"), self._deleting)
        self._tell(f"scan of 100 columns, {self.sizes.wide:,} rows, 5 % deleted", took)

    def _many(self) -> None:
        for worker in self.workers.values():
            worker.ask("add_files", "many", self.many)
        took = self._rounds(_asking("first", "many"))
        self._tell(f"first row of {self.sizes.files:,} files", took)
        self._each("delete", "many", "id = 7")
        took = self._rounds(_asking("aggregate", "many"), self._deleting)
        self._tell(f"narrow aggregate, {self.sizes.files:,} small DVs", took)

    def _far(self) -> None:
        """Read ten files of very many, by a condition on a DataFrame and by a join."""
        count = self.sizes.far
        self.report.tell(f"making a table of {count:,} files")
        spark_far.build(self.far, FAR, count, _READ, parts=True)
        spark_far.write_parts(self.parts, count)
        where = spark_far.condition(count, _READ)
        part = spark_far.chosen(count, _READ).start // spark_far.FILES_OF_A_PART
        for case, words in {
            "filtered DataFrame, cold": ("far_cold", str(self.far), where),
            "filtered DataFrame, warm": ("far_warm", where),
            "star join": ("far_join", str(self.parts), spark_far.part_name(part)),
        }.items():
            took = self._rounds(_asking(*words), _TREES)
            self._tell(f"{case}, {_READ} of {count:,} files", took)

    # --- how ---------------------------------------------------------------------------------

    @property
    def _deleting(self) -> list[str]:
        return [name for name in self.workers if name != PLAIN]

    def _each(self, *words: Any) -> None:
        for name in self._deleting:
            self.workers[name].ask(*words)

    def _rounds(
        self,
        run: Callable[[Worker], dict[str, Any]],
        names: Sequence[str] | None = None,
        more: Mapping[str, Callable[[], dict[str, Any]]] | None = None,
        *,
        after: Callable[[Worker], object] = lambda _: None,
    ) -> dict[str, Timing]:
        """Let the systems take turns, and return the medians."""
        took: dict[str, list[dict[str, Any]]] = {}
        for _ in range(self.sizes.rounds + 1):
            for name in self.workers if names is None else names:
                took.setdefault(name, []).append(run(self.workers[name]))
                after(self.workers[name])
            for name, other in (more or {}).items():
                took.setdefault(name, []).append(other())
        found = {json.dumps(one["found"]) for each in took.values() for one in each}
        if len(found) > 1:
            raise RuntimeError(f"systems do not see the same rows: {found}")
        return {
            name: Timing(
                cpu_ms=median(one["cpu_ms"] for one in each[1:]),
                wall_ms=median(one["wall_ms"] for one in each[1:]),
            )
            for name, each in took.items()
        }

    def _tell(self, case: str, took: Mapping[str, Timing]) -> None:
        for name, timing in took.items():
            self.report.add(case, timing, system=name)
        ratio = took[OURS].wall_ms / took[JAVA].wall_ms
        self.report.at_most(f"{case}, wall over {JAVA}", ratio, 1.0)


def _asking(*words: Any) -> Callable[[Worker], dict[str, Any]]:
    return lambda worker: worker.ask(*words)


if __name__ == "__main__":
    sys.exit(main("spark", __doc__, measure))
