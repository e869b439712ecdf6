"""Where each column stands in a schema as JSON, and how it is found by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from icetree.errors import InvalidInput
from icetree.spec.texts import did_you_mean

#: "address.zip", or a tuple of names where a name itself has a dot.
Path: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A column in a schema: a field of a struct, an element of a list, a key or value of a map.

    It is a view: setting something changes the JSON below it.
    """

    #: The field itself, or the list or map type that the column is a part of.
    holder: dict[str, Any]
    #: The fields of the struct it stands in; None for a part of a list or map.
    siblings: list[dict[str, Any]] | None
    #: "element", "key" or "value"; None for a field of a struct.
    part: str | None
    #: What it is nested in, outermost first.
    parents: tuple[Place, ...]

    @property
    def own_name(self) -> str:
        """Its name without those of what it is nested in."""
        return self.part or str(self.holder["name"])

    @property
    def name(self) -> str:
        """Its full name, with dots."""
        return ".".join(each.own_name for each in (*self.parents, self))

    @property
    def id(self) -> int:
        """Its field id."""
        return int(self.holder["id" if self.part is None else f"{self.part}-id"])

    @property
    def type(self) -> Any:
        """Its type, as JSON."""
        return self.holder["type" if self.part is None else self.part]

    @property
    def required(self) -> bool:
        """Tell whether it can never be null."""
        if self.part == "key":
            return True
        return bool(self.holder["required" if self.part is None else f"{self.part}-required"])

    @property
    def in_key(self) -> bool:
        """Tell whether it is, or is inside, the key of a map."""
        return any(each.part == "key" for each in (*self.parents, self))

    @property
    def is_repeated(self) -> bool:
        """Tell whether a row can have many values of it: it is inside a list or map."""
        return any(each.part is not None for each in (*self.parents, self))

    @property
    def is_struct(self) -> bool:
        """Tell whether it has fields."""
        return isinstance(self.type, dict) and self.type["type"] == "struct"

    def set_type(self, type: Any) -> None:
        """Change its type."""
        self.holder["type" if self.part is None else self.part] = type

    def set_required(self, required: bool) -> None:
        """Change whether it can be null."""
        self.holder["required" if self.part is None else f"{self.part}-required"] = required


def walk(schema: Mapping[str, Any]) -> Iterator[Place]:
    """Yield every column, each before what is inside it."""
    yield from _struct(schema, ())


def under(place: Place) -> Iterator[Place]:
    """Yield every column nested in another."""
    match place.type:
        case {"type": "struct"} as struct:
            yield from _struct(struct, (*place.parents, place))
        case {"type": "list" | "map"} as holder:
            for part in ("element",) if holder["type"] == "list" else ("key", "value"):
                inner = Place(
                    holder=holder, siblings=None, part=part, parents=(*place.parents, place)
                )
                yield inner
                yield from under(inner)


def _struct(struct: Mapping[str, Any], parents: tuple[Place, ...]) -> Iterator[Place]:
    for field in struct["fields"]:
        place = Place(holder=field, siblings=struct["fields"], part=None, parents=parents)
        yield place
        yield from under(place)


def by_name(schema: Mapping[str, Any]) -> dict[str, Place]:
    """Return every column by full name, and by the short one that leaves out element and value.

    As in Iceberg, `points.x` is short for `points.element.x`.
    """
    places = list(walk(schema))
    found = {place.name: place for place in places}
    for place in places:
        short = [p.own_name for p in place.parents if p.part in {None, "key"} or not p.is_struct]
        found.setdefault(".".join([*short, place.own_name]), place)
    return found


def find(schema: Mapping[str, Any], path: Path) -> Place:
    """Return a column by name; InvalidInput, with what may have been meant, if there is none."""
    name = dotted(path)
    names = by_name(schema)
    if name not in names:
        raise InvalidInput(f"there is no column {name!r}{did_you_mean(name, names)}")
    return names[name]


def dotted(path: Path) -> str:
    """Return a path as one name; InvalidInput when a part of it is empty."""
    parts: Any = path.split(".") if isinstance(path, str) else path
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InvalidInput(f"{path!r} is no column: give its name, or a tuple of names")
    if not parts or not all(part.strip() for part in parts):
        raise InvalidInput(f"column name {path!r} has an empty part")
    return path if isinstance(path, str) else ".".join(path)
