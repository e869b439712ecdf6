"""Tables as statements make and change them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import types as t

from campaigns.statements.conditions import places, quoted
from campaigns.statements.values import SINGLES, WIDER, drawn_type, is_single

#: The table that most statements are about, another of the same columns at first, and a branch.
TABLE: Final = "t"
OTHER: Final = "s"
BRANCH: Final = "b"
NAMES: Final = ("c0", "c1", "Name", "a b", "ä", "order", "x", "y")
_MODES: Final = ("merge-on-read", "copy-on-write")
_METRICS: Final = ("truncate(16)", "truncate(16)", "full", "truncate(1)", "counts", "none")


@dataclass(slots=True)
class Shape:
    """What a table has beside its columns."""

    layout: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    has_branch: bool = False

    def note(self, text: str) -> None:
        """Note a statement that was carried out."""
        match text.split():
            case [_, _, _, "CREATE", "BRANCH", _]:
                self.has_branch = True
            case [_, _, _, "CREATE", "TAG", tag]:
                self.tags.append(tag)
            case [_, _, _, "ADD" | "DROP" | "REPLACE" as how, "PARTITION", "FIELD", *words]:
                gone, _, by = " ".join(words).partition(" WITH ")
                # A name instead of a transform may be one that a rename gave it.
                if how != "ADD" and gone in self.layout:
                    self.layout.remove(gone)
                self.layout += {"ADD": [gone], "DROP": [], "REPLACE": [by]}[how]


def created(chance: random.Random, shape: Shape) -> list[str]:
    """Return what makes both tables, and note what they are laid out by."""
    names = chance.sample(NAMES, chance.randrange(3, 6))
    columns = {"id": chance.choice(("int", "bigint"))}
    columns |= {name: drawn_type(chance) for name in names}
    listed = ", ".join(f"{quoted(name)} {type}" for name, type in columns.items())
    parts = [partition(chance, *each) for each in chance.sample([*columns.items()], 2)]
    shape.layout = [each for each in parts if each][: chance.choice((0, 1, 1, 1, 2))]
    by = f" PARTITIONED BY ({', '.join(shape.layout)})" if shape.layout else ""
    told = f" TBLPROPERTIES ({properties(chance)})"
    return [f"CREATE TABLE {TABLE} ({listed}){by}{told}", f"CREATE TABLE {OTHER} ({listed})"]


def partition(chance: random.Random, name: str, type: str) -> str | None:
    """Return a part of a layout by a column, if its type can be one."""
    text = quoted(name)
    if not is_single(type):
        return None
    is_time = type.startswith("timestamp")
    forms = [] if is_time else [text]
    if type not in ("float", "double", "boolean"):
        forms.append(f"bucket({chance.choice((2, 5))}, {text})")
    if type in ("int", "bigint", "string", "binary") or type.startswith("decimal"):
        forms.append(f"truncate({chance.choice((1, 2, 10))}, {text})")
    if is_time or type == "date":
        forms += [f"{unit}({text})" for unit in ("years", "months", "days")]
    forms += [f"hours({text})"] if is_time else []
    return chance.choice(forms)


def properties(chance: random.Random) -> str:
    """Return properties that say how rows are changed and files written."""
    told = {f"write.{verb}.mode": chance.choice(_MODES) for verb in ("delete", "update", "merge")}
    told["write.format.default"] = chance.choice(("parquet",) * 8 + ("orc", "avro"))
    told["write.metadata.metrics.default"] = chance.choice(_METRICS)
    told["write.distribution-mode"] = chance.choice(("none", "hash", "range"))
    # Ours alone: roots so small that there are leaves.
    told["write.root.max-data-entries"] = chance.choice(("0", "2", "100"))
    told["write.root.max-delete-entries"] = chance.choice(("0", "1", "100"))
    return ", ".join(f"'{name}' = '{value}'" for name, value in told.items())


def altered(chance: random.Random, columns: t.StructType, shape: Shape) -> str:
    """Return a change of the table, which has such columns now, or a new tag or branch of it."""
    free = [each for each in NAMES if each.lower() not in {n.lower() for n in columns.names}]
    field = chance.choice([each for each in columns.fields if each.name != "id"])
    name, said = quoted(field.name), field.dataType.simpleString()
    forms = [f"SET TBLPROPERTIES ({properties(chance)})"]
    if free:
        where = chance.choice(("", "", " FIRST", f" AFTER {name}"))
        forms += [f"ADD COLUMN {quoted(free[0])} {drawn_type(chance)}{where}"] * 2
        forms += [f"RENAME COLUMN {name} TO {quoted(free[-1])}"] * 2
    if len(columns.fields) > 3:
        forms.append(f"DROP COLUMN {name}")
    forms.append(f"ALTER COLUMN {name} {chance.choice(('FIRST', 'AFTER id'))}")
    for each in places(columns):
        forms += [f"ALTER COLUMN {each.text} TYPE {wider}" for wider in WIDER.get(each.said, ())]
        if isinstance(each.type, t.StructType):
            forms += [f"ADD COLUMN {each.text}.z {chance.choice(SINGLES)}"]
            forms += [f"RENAME COLUMN {each.text}.a TO {chance.choice(('a2', 'z'))}"]
            forms += [f"DROP COLUMN {each.text}.{each.type.fields[0].name}"]
    by = partition(chance, field.name, said)
    if by:
        forms += [f"ADD PARTITION FIELD {by}"] * 2
        forms += [f"REPLACE PARTITION FIELD {gone} WITH {by}" for gone in shape.layout]
    forms += [f"DROP PARTITION FIELD {gone}" for gone in shape.layout]
    forms += [] if shape.has_branch else [f"CREATE BRANCH {BRANCH}"]
    forms += [f"CREATE TAG v{len(shape.tags)}"] * 2
    if is_single(said):
        forms.append(f"WRITE ORDERED BY {name}{chance.choice(('', ' DESC', ' NULLS LAST'))}")
    return f"ALTER TABLE {TABLE} {chance.choice(forms)}"
