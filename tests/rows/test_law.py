"""The law of reading: every snapshot, ever after, gives the rows that a plain list gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icetree.table.table import Table
from tests.effort import law
from tests.table.changing import (
    LEAFY,
    bag,
    changing_table,
    compact,
    data_files,
    delete_equal,
    delete_rows,
    now,
    some,
    written,
)

Row = tuple[int, str | None]

_IDS = st.lists(st.integers(0, 7), min_size=1, max_size=4)
_VERBS = ("append", "dv", "equality", "upsert", "overwrite", "compact", "truncate", "evolve")
_FORMATS = ("parquet", "orc", "avro")
_STEPS = st.lists(st.tuples(st.sampled_from(_VERBS), _IDS), min_size=3, max_size=9)
_FILTERS = (
    ("id >= 3", lambda row: row[0] >= 3),
    ("id in (1, 5)", lambda row: row[0] in (1, 5)),
    ("v is null", lambda row: row[1] is None),
    ("not (id = 2) and v is not null", lambda row: row[0] != 2 and row[1] is not None),
    ("v starts with 'app' or id < 1", lambda row: (row[1] or "").startswith("app") or row[0] < 1),
)


def _step(table: Table, model: list[Row], verb: str, ids: list[int], at: int) -> list[Row]:
    """Carry out a step on the table, and return what it makes of the model."""
    new: list[Row] = [(id, f"{verb}{at}" if id % 3 else None) for id in ids]
    kept = [row for row in model if row[0] not in ids]
    match verb:
        case "append":
            table.append(some(*new))
            return model + new
        case "dv":
            delete_rows(table, ids)
            return kept
        case "equality":
            delete_equal(table, ids)
            return kept
        case "upsert":
            delete_equal(table, ids, add=some(*new))
            return kept + new
        case "overwrite" if data_files(table):
            table.overwrite_files(data_files(table), written(table, some(*new)))
            return new
        case "compact" if data_files(table):
            compact(table, keep_lineage=at % 2 == 0)
        case "truncate" if at % 3 == 0:
            table.truncate()
            return []
        case "evolve":
            with table.edit_schema() as schema:
                schema.add(f"more{at}", "int")
    return model


@law(12, usual=8)
@given(_STEPS, st.booleans(), st.sampled_from(_FORMATS))
def test_every_snapshot_gives_the_rows_of_the_model_filtered_or_not(
    steps: list[tuple[str, list[int]]], leafy: bool, format: str
) -> None:
    table = changing_table(properties={**(LEAFY if leafy else {}), "write.format.default": format})
    model: list[Row] = [(0, "first"), (1, None)]
    table.append(some(*model))
    past = {now(table): list(model)}
    for at, (verb, ids) in enumerate(steps):
        if at % 3 == 2:
            # Files of several formats side by side.
            format = _FORMATS[(at + len(ids)) % len(_FORMATS)]
            table.set_properties({"write.format.default": format})
        model = _step(table, model, verb, ids, at)
        past[now(table)] = list(model)
    for snapshot_id, rows in past.items():
        assert bag(table.scan(at=snapshot_id).to_arrow()) == bag(some(*rows))
        assert table.scan(at=snapshot_id).count() == len(rows)
        for text, matches in _FILTERS:
            wanted = [row for row in rows if matches(row)]
            found = table.scan(text, at=snapshot_id)
            assert bag(found.to_arrow()) == bag(some(*wanted)), (text, snapshot_id)
            assert found.count() == len(wanted)
    assert table.verify().is_clean
