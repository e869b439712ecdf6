"""What people can get hold of: everything that public names return, and that these return in turn."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import icetree
import icetree.errors
import icetree.spark
from icetree.files.table_files import TableFiles
from icetree.picture.model import Picture
from icetree.spark.cache import Cache as SparkCache
from icetree.spark.lake import Moment
from icetree.spec.schema.shape import Shape
from icetree.table.state import State
from icetree.tree.plan.plan import Planner

#: What public things keep within reach for the code, and nobody else: the walk ends there.
INNER: frozenset[type] = frozenset({Moment, Picture, Planner, Shape, SparkCache, State, TableFiles})


def functions() -> list[Callable[..., Any]]:
    """Return the functions that the package names as its own."""
    named = [getattr(room, name) for room in (icetree, icetree.spark) for name in room.__all__]
    return [each for each in named if inspect.isfunction(each)]


def held() -> set[type]:
    """Return the classes of ours that one comes to from them, by what is said to be returned.

    Of an abstract one, those are held that stand in for it.
    """
    return reached() - INNER


def reached() -> set[type]:
    """Return what is held, and what the code has for itself beside it."""
    found: set[type] = set()
    waiting = [each for function in functions() for each in _returned(function)]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            if one in INNER:
                continue
            waiting += one.__subclasses__() if inspect.isabstract(one) else []
            waiting += [each for member in _members(one) for each in _returned(member)]
            room, told = sys.modules[one.__module__], inspect.get_annotations(one)
            waiting += [
                each
                for name, text in told.items()
                if not name.startswith("_")
                for each in _classes(room, str(text))
            ]
    return found


def _members(one: type) -> Iterator[Callable[..., Any]]:
    for name in dir(one):
        if not name.startswith("_"):
            member = inspect.getattr_static(one, name)
            inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(inner):
                yield inspect.unwrap(inner)


def _returned(function: Callable[..., Any]) -> Iterator[type]:
    """Return the classes of ours in what a function is said to return; of contexts, what they give."""
    told = str(function.__annotations__.get("return", ""))
    return _classes(sys.modules[function.__module__], told)


def _classes(room: ModuleType, told: str) -> Iterator[type]:
    for name in re.findall(r"\w+", told):
        known = getattr(room, name, None) or _imported(room).get(name)
        # Another name may stand for several.
        for each in (known, *typing.get_args(known)):
            if inspect.isclass(each) and each.__module__.startswith("icetree."):
                yield each


@cache
def _imported(room: ModuleType) -> dict[str, Any]:
    """Return what a module imports for its types alone."""
    text = Path(str(room.__file__)).read_text(encoding="utf-8")
    return {
        alias.asname or alias.name: getattr(importlib.import_module(node.module), alias.name, None)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("icetree.")
        for alias in node.names
        if node.module
    }
