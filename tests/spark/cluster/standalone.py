"""A cluster of Spark's own making on this machine: a master and workers, each a process of its own.

What executors know is what is installed: they start in folders of their own, and their Python has the package
and what it needs, without the rest of this repository.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sysconfig
import time
import venv
from contextlib import suppress
from pathlib import Path

import pyspark

import icetree
from icetree.spark.java import java_home

_HOME = Path(pyspark.__file__).parent
_LOOPBACK = "127.0.0.1"
#: Spark's own miniature: a worker with one core and 1,024 MiB, whose executor is a process.
SMALLEST = "local-cluster[1,1,1024]"
#: Compiling well pays off only after a test run has ended.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:CompileThresholdScaling=4"
_PATIENCE_S = 120.0


def installed(folder: Path) -> Path:
    """Return a Python of its own, in a folder, in which icetree is installed and nothing else of this repository.

    An editable install leads to all of the repository, by a file that only its own Python reads.
    """
    venv.create(folder, symlinks=True)
    [own], shared = folder.glob("lib/python*/site-packages"), sysconfig.get_paths()
    (own / "icetree").symlink_to(Path(icetree.__file__).parent)
    (own / "shared.pth").write_text(f"{shared['purelib']}\n{shared['platlib']}\n")
    return folder / "bin" / "python"


def spark_home(folder: Path) -> Path:
    """Return Spark's own folder, below another one: Spark's miniature works in a folder within it."""
    folder.mkdir()
    for each in _HOME.iterdir():
        if each.name != "work":
            (folder / each.name).symlink_to(each)
    return folder


class Standalone:
    """A master, and workers with one core each, that come and go."""

    def __init__(self, folder: Path, *, workers: int) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start("master", "deploy.master.Master", "--port", "0")
        self.address = self._told("master", r"Starting Spark master at (spark://\S+)")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start one more worker."""
        name = f"worker-{len(self._processes)}"
        place = self._folder / name
        self._start(
            name, "deploy.worker.Worker", "--cores", "1", "--memory", "1g",
            "--work-dir", str(place), "--port", "0", self.address,
        )  # fmt: skip

    def lose_worker(self, folder: str) -> None:
        """End the worker that has a folder, with all that runs on it, as when its machine is lost."""
        found = re.search(r"worker-\d+", folder.removeprefix(str(self._folder)))
        assert found is not None, folder
        self._end(found[0])

    def lose_client(self, port: int) -> None:
        """End the worker of which a process has a connection from this port of the machine."""
        socket = f"socket:[{_inode(port)}]"
        running = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]
        owner = next(pid for pid in running if _has(pid, socket))
        self._end(next(n for n, each in self._processes.items() if each.pid == os.getsid(owner)))

    def stop(self) -> None:
        """End what is left."""
        for name in list(self._processes):
            self._end(name)

    def log(self, name: str) -> str:
        """Return what a process has said."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        known = {
            name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ
        }
        settings = {
            "SPARK_HOME": str(_HOME),
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_JAVA} -Dspark.master.rest.enabled=false",
        }
        program = [_HOME / "bin" / "spark-class", f"org.apache.spark.{kind}"]
        with (self._folder / f"{name}.log").open("wb") as log:
            # A group of its own: a worker's executors are in it, and end with it.
            self._processes[name] = subprocess.Popen(
                [*program, "--host", _LOOPBACK, "--webui-port", "0", *arguments],
                stdout=log, stderr=log, cwd=self._folder, env={**known, **settings},
                start_new_session=True,
            )  # fmt: skip

    def _told(self, name: str, wanted: str) -> str:
        give_up = time.monotonic() + _PATIENCE_S
        while (found := re.search(wanted, self.log(name))) is None:
            ended = self._processes[name].poll() is not None
            if ended or time.monotonic() > give_up:
                raise RuntimeError(f"the {name} did not start: {self.log(name)[-2000:]}")
            time.sleep(0.05)
        return found[1]

    def _end(self, name: str) -> None:
        process = self._processes[name]
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def _inode(port: int) -> str:
    """Return the number of the socket that has a local port, in a connection that stands."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01")


def _has(pid: int, socket: str) -> bool:
    with suppress(OSError):
        return any(each.readlink() == Path(socket) for each in Path(f"/proc/{pid}/fd").iterdir())
    return False
