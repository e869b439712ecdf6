"""Nouns as JSON objects and back, in files that are gzip or plain: what every document shares."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from icetree.codec import limits
from icetree.codec.json_text import require_modest
from icetree.codec.unpack import UNREADABLE, OverLimit, gunzip
from icetree.errors import CorruptTable
from icetree.spec.noun import Noun
from icetree.spec.texts import json_bytes

N = TypeVar("N", bound=Noun)
Json: TypeAlias = dict[str, Any]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_NAMES: Final = (".gz.metadata.json", ".metadata.json.gz")
#: Commits wait for this: a quarter of the usual time for a sixth more bytes.
_GZIP_LEVEL: Final = 1


class Broken(Exception):
    """A rule is broken; the file's name is added where it is known."""


def document(data: bytes, *, file: str) -> Json:
    """Read a JSON object, gzip or plain, whatever it says; CorruptTable for what is none."""
    try:
        return unpacked(data, file)
    except Broken as error:
        raise CorruptTable(file, str(error)) from None


def unpacked(data: bytes, file: str) -> Json:
    """Read a JSON object, gzip or plain, whatever it says; Broken."""
    if data.startswith(_GZIP_MAGIC) or file.endswith(_GZIP_NAMES):
        try:
            data = gunzip(data, limits.METADATA.bytes)
        except OverLimit:
            raise limits.METADATA.exceeded(file, "it unpacks to more") from None
        except UNREADABLE as error:
            raise Broken(f"not a whole gzip file: {error}") from None
    require_modest(data, file=file)
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Broken(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Broken("not a JSON object")
    return document


def list_in(raw: object, where: str) -> list[Any]:
    """Return a list, empty where there is none; Broken."""
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise Broken(f"{where} is not a list")
    return raw


def object_in(raw: object, where: str) -> Json:
    """Return an object; Broken."""
    if not isinstance(raw, dict):
        raise Broken(f"{where} is not an object")
    return raw


def nouns(noun: type[N], raw: object, where: str) -> tuple[N, ...]:
    """Read a list of objects, as `noun_of` reads one."""
    items = list_in(raw, where)
    known = _known(noun)
    if all(isinstance(each, dict) and known.issuperset(each) for each in items):
        # Nothing to set aside, as a rule: all of them in one go, for commits wait for this.
        try:
            found: tuple[N, ...] = msgspec.convert(items, _tuple_of(noun))
            return found
        except msgspec.ValidationError as error:
            raise Broken(f"{where}: {error}") from None
    return tuple([noun_of(noun, each, f"{where}[{at}]") for at, each in enumerate(items)])


def noun_of(noun: type[N], raw: object, where: str) -> N:
    """Read a JSON object; what the noun does not know goes into its `extra`."""
    if not isinstance(raw, dict):
        raise Broken(f"{where} is not an object")
    known = _known(noun)
    body = raw
    if not known.issuperset(raw):
        body = {name: value for name, value in raw.items() if name in known}
        body["extra"] = {name: value for name, value in raw.items() if name not in known}
    try:
        return msgspec.convert(body, noun)
    except msgspec.ValidationError as error:
        raise Broken(f"{where}: {error}") from None


@cache
def _tuple_of(noun: type[Noun]) -> Any:
    return tuple[noun, ...]  # type: ignore[valid-type]


@cache
def _known(noun: type[Noun]) -> frozenset[str]:
    return frozenset(name for _, name, _ in _layout(noun))


@cache
def _layout(noun: type[Noun]) -> tuple[tuple[str, str, object], ...]:
    """Return (attribute, JSON name, default) of every field but `extra`."""
    return tuple(
        (
            each.name,
            each.encode_name,
            each.default if each.default_factory is msgspec.NODEFAULT else {},
        )
        for each in msgspec.structs.fields(noun)
        if each.name != "extra"
    )


def packed(document: Json, *, compress: bool) -> bytes:
    """Return a document as the bytes of a file."""
    data = json_bytes(document)
    return gzip.compress(data, _GZIP_LEVEL, mtime=0) if compress else data


def object_of(noun: Noun) -> Json:
    """Return a noun as a JSON object with its `extra` beside what is known."""
    found = {}
    for attribute, name, default in _layout(type(noun)):
        value = getattr(noun, attribute)
        if default is msgspec.NODEFAULT or value != default:
            found[name] = value
    return found | noun.extra


def slim(noun: Noun) -> Noun | Json:
    """Return what encodes to the noun's JSON: the noun itself when it has nothing extra."""
    return object_of(noun) if noun.extra else noun


def objects(nouns: Iterable[Noun]) -> list[Noun | Json]:
    """Return what encodes to a list of nouns."""
    return [slim(each) for each in nouns]


def prime() -> None:
    """Have every noun that is there so far worked out: for who declares some, when it is imported.

    msgspec works a class out at its first use, and takes the process down when two threads do so at
    the same time. An import happens in one thread only.
    """
    waiting: list[type[Noun]] = [Noun]
    while waiting:
        found = waiting.pop().__subclasses__()
        for each in found:
            msgspec.json.Decoder(each)
        waiting += found
