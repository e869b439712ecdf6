"""A catalog that fails, dawdles or lets others slip in, at the calls a test names."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from icetree.catalog.base import Catalog, Namespace, Outcome, TableName, Unknown, ViewName
from icetree.errors import CommitUnknown


@dataclass(frozen=True, slots=True)
class Refuse:
    """Raise instead of doing it."""

    error: Exception


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Do it, then say that the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """Do nothing, then say that the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, then do it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Before:
    """Call something first: another's commit, or the end of this process."""

    call: Callable[[], object]


@dataclass(frozen=True, slots=True)
class After:
    """Do it, then call something before the answer goes out."""

    call: Callable[[], object]


Fault: TypeAlias = Refuse | LoseAnswer | LoseRequest | Delay | Before | After


@dataclass
class FlakyCatalog:
    """Passes calls on to `inner`, but for those at which a fault waits.

    `faults` is by method and count: `{("swap", 1): LoseAnswer()}` hits the first swap. `steps`
    lists the calls made so far. `always` is the fault of every call that has none of its own.
    """

    inner: Catalog
    faults: Mapping[tuple[str, int], Fault] = field(default_factory=dict)
    always: Fault | None = None
    steps: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    def _step(self, method: str, do: Callable[[], Any], *, lost: Callable[[], Any]) -> Any:
        self.steps.append(method)
        match self.faults.get((method, self.steps.count(method)), self.always):
            case Refuse(error):
                raise error
            case LoseRequest():
                return lost()
            case LoseAnswer():
                do()
                return lost()
            case Delay(seconds):
                time.sleep(seconds)
            case Before(call):
                call()
            case After(call):
                done = do()
                call()
                return done
        return do()

    def _write(self, method: str, do: Callable[[], None]) -> None:
        def lost() -> None:
            raise CommitUnknown(f"the answer to {method} was lost")

        self._step(method, do, lost=lost)

    def _read(self, method: str, do: Callable[[], Any]) -> Any:
        def lost() -> None:
            raise ConnectionResetError(f"the answer to {method} was lost")

        return self._step(method, do, lost=lost)

    def namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        return list(self._read("namespaces", lambda: self.inner.namespaces(parent)))

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        self._write("create_namespace", lambda: self.inner.create_namespace(namespace, properties))

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return dict(
            self._read("namespace_properties", lambda: self.inner.namespace_properties(namespace))
        )

    def update_namespace(
        self, namespace: Namespace, *, put: Mapping[str, str], remove: Collection[str]
    ) -> None:
        self._write(
            "update_namespace",
            lambda: self.inner.update_namespace(namespace, put=put, remove=remove),
        )

    def drop_namespace(self, namespace: Namespace) -> None:
        self._write("drop_namespace", lambda: self.inner.drop_namespace(namespace))

    def tables(self, namespace: Namespace) -> list[TableName]:
        return list(self._read("tables", lambda: self.inner.tables(namespace)))

    def views(self, namespace: Namespace) -> list[ViewName]:
        return list(self._read("views", lambda: self.inner.views(namespace)))

    def create(self, table: TableName, metadata_location: str) -> None:
        self._write("create", lambda: self.inner.create(table, metadata_location))

    def load(self, table: TableName) -> str:
        return str(self._read("load", lambda: self.inner.load(table)))

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        outcome: Outcome = self._step(
            "swap",
            lambda: self.inner.swap(table, expected=expected, to=to),
            lost=lambda: Unknown(reason="the answer to swap was lost"),
        )
        return outcome

    def turn_taken(self, table: TableName) -> bool:
        return self.inner.turn_taken(table)

    def turn(self, table: TableName, *, wait_s: float) -> AbstractContextManager[bool]:
        return self.inner.turn(table, wait_s=wait_s)

    def drop(self, table: TableName, *, expected: str | None = None) -> None:
        self._write("drop", lambda: self.inner.drop(table, expected=expected))

    def rename(self, table: TableName, to: TableName) -> None:
        self._write("rename", lambda: self.inner.rename(table, to))

    def close(self) -> None:
        self.inner.close()
