"""Each verb that changes a view, what the lake has before it, and how a view is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icetree.errors import AlreadyExists, NotFound
from icetree.table.lake import Lake

COLUMNS: Final = "id long, name string"
#: Five asks for a swap whose answer was lost, at once.
IMPATIENT: Final = {"commit.status-check.num-retries": "4", "commit.status-check.max-wait-ms": "0"}


def prepare(lake: Lake) -> None:
    """Put a view and a table into a lake that is empty."""
    lake.create_namespace("db")
    lake.create_table("db.t", COLUMNS)
    lake.create_view("db.old", "SELECT 1", "a int", properties=IMPATIENT)


VERBS: Final[dict[str, Callable[[Lake], object]]] = {
    "create": lambda lake: lake.create_view("db.new", "SELECT 2", "a int", properties=IMPATIENT),
    "replace": lambda lake: lake.view("db.old").replace("SELECT 3", "b long"),
    "set properties": lambda lake: lake.view("db.old").set_properties({"comment": "x"}),
    "rename": lambda lake: lake.rename_view("db.old", "db.new"),
    "drop": lambda lake: lake.drop_view("db.old"),
}


def seen(lake: Lake) -> dict[str, object]:
    """Return all views as somebody sees them who comes fresh."""
    assert lake.tables("db") == ["db.t"]
    return {name: told(lake, name) for name in lake.views("db")}


def told(lake: Lake, name: str) -> object:
    view = lake.view(name)
    columns = [(field.name, str(field.field_type)) for field in view.schema.fields]
    log = [each.version_id for each in view.metadata.version_log]
    return view.text, columns, dict(view.properties), log


def again(lake: Lake, verb: str) -> None:
    """Carry a verb out once more, where it may have been carried out before."""
    try:
        VERBS[verb](lake)
    except (AlreadyExists, NotFound):
        assert verb in ("create", "rename", "drop")
