"""Names of Java, asked for once.

Whenever Python names a class of Java's, Java looks for it in all packages that may be meant, and for
each of these in every jar: a tenth of what statements on a few rows take.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaPackage, JVMView


def remember_names() -> None:
    """Let packages and classes of a JVM be what they were when they were first asked for."""
    for kind in (JVMView, JavaPackage):
        _remember(kind)


def _remember(kind: Any) -> None:
    ask = kind.__getattr__

    def asked(self: Any, name: str) -> Any:
        found = ask(self, name)
        # What an object has, it is not asked for.
        self.__dict__[name] = found
        return found

    kind.__getattr__ = asked
