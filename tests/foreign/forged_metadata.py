"""Table metadata that breaks a rule: each says whether it found what to break."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from typing import Any

from tests.foreign.columns import Json
from tests.foreign.forgery import Forgery

_Change = Callable[[Json], Any]


def _retell(f: Forgery, change: _Change) -> bool:
    """Change the document in place."""
    document = f.document()
    change(document)
    return f.retell(document)


def _set(f: Forgery, name: str, value: Any) -> bool:
    return _retell(f, lambda told: told.__setitem__(name, value))


def _bytes(f: Forgery, change: Callable[[bytes], bytes]) -> bool:
    return f.retell(change(json.dumps(f.document()).encode()))


# --- JSON ----------------------------------------------------------------------------------------


def mark_before_the_text(f: Forgery) -> bool:
    return _bytes(f, lambda text: codecs.BOM_UTF8 + text)


def text_of_two_bytes_each(f: Forgery) -> bool:
    return _bytes(f, lambda text: text.decode().encode("utf-16"))


def text_that_goes_on(f: Forgery) -> bool:
    return _bytes(f, lambda text: text + b"{}")


def text_that_is_cut_short(f: Forgery) -> bool:
    return _bytes(f, lambda text: text[:-2])


def bytes_that_are_no_text(f: Forgery) -> bool:
    return _bytes(f, lambda text: text.replace(b"memory://", b"memory://\xff", 1))


def number_with_a_point(f: Forgery) -> bool:
    name = f.rng.choice(("last-column-id", "default-spec-id", "last-updated-ms", "next-row-id"))
    return _retell(f, lambda told: told.__setitem__(name, float(told[name])))


def number_with_an_exponent(f: Forgery) -> bool:
    def spell(text: bytes) -> bytes:
        return text.replace(b'"format-version": 4', b'"format-version": 4e0')

    return _bytes(f, spell)


def number_as_text(f: Forgery) -> bool:
    return _retell(f, lambda told: told.__setitem__("next-row-id", str(told["next-row-id"])))


def truth_for_a_number(f: Forgery) -> bool:
    def change(told: Json) -> None:
        told["schemas"].append(told["schemas"][-1] | {"schema-id": True})

    return _retell(f, change)


def id_of_a_column_with_a_point(f: Forgery) -> bool:
    def change(told: Json) -> None:
        field = told["schemas"][-1]["fields"][0]
        field["id"] = float(field["id"])

    return _retell(f, change)


def spec_with_a_point(f: Forgery) -> bool:
    return _retell(f, lambda told: told["partition-specs"][0].__setitem__("spec-id", 0.0))


# --- what does not go together -------------------------------------------------------------------


def no_current_schema(f: Forgery) -> bool:
    return _set(f, "current-schema-id", 77)


def column_beyond_the_last(f: Forgery) -> bool:
    return _set(f, "last-column-id", 1)


def two_columns_of_one_id(f: Forgery) -> bool:
    def change(told: Json) -> None:
        one, other = told["schemas"][-1]["fields"][:2]
        other["id"] = one["id"]

    return _retell(f, change)


def two_columns_of_one_name(f: Forgery) -> bool:
    def change(told: Json) -> None:
        one, other = told["schemas"][-1]["fields"][:2]
        other["name"] = one["name"]

    return _retell(f, change)


def identifier_that_is_no_column(f: Forgery) -> bool:
    return _identified_by(f, 199_999)


def identifier_that_may_be_null(f: Forgery) -> bool:
    return _identified_by(f, f.writer.layout.column("n").id)


def _identified_by(f: Forgery, id: int) -> bool:
    return _retell(f, lambda told: told["schemas"][-1].__setitem__("identifier-field-ids", [id]))


def expression_of_two_columns_and_one_that_is_none_of_them(f: Forgery) -> bool:
    id = f.writer.layout.column("id").id

    def change(told: Json) -> None:
        for each in told["expressions"]:
            sources = each["expr"].setdefault("source-ids", [each["expr"].get("source-id")])
            each["expr"]["source-id"] = id if sources[0] != id else id + 1

    return bool(f.document()["expressions"]) and _retell(f, change)


def expression_without_a_column(f: Forgery) -> bool:
    def change(told: Json) -> None:
        for name in ("source-id", "source-ids"):
            told["expressions"][0]["expr"].pop(name, None)

    return bool(f.document()["expressions"]) and _retell(f, change)


def spec_of_no_expression(f: Forgery) -> bool:
    def change(told: Json) -> None:
        told["partition-specs"][0]["fields"] = [{"expr-id": 199_999}]

    return _retell(f, change)


def ref_to_nowhere(f: Forgery) -> bool:
    lost = {"lost": {"snapshot-id": 5, "type": "tag"}}
    return _retell(f, lambda told: told.__setitem__("refs", told.get("refs", {}) | lost))


def ref_of_no_kind(f: Forgery) -> bool:
    def change(told: Json) -> None:
        odd = {"snapshot-id": told["current-snapshot-id"], "type": "twig"}
        told["refs"] = told.get("refs", {}) | {"odd": odd}

    return _retell(f, change)


def snapshot_without_a_root(f: Forgery) -> bool:
    return _retell(f, lambda told: told["snapshots"][-1].pop("root-manifest"))


def snapshot_with_two_tops(f: Forgery) -> bool:
    also = {"manifest-list": "memory://foreign/db/t/metadata/snap.avro"}
    return _retell(f, lambda told: told["snapshots"][-1].update(also))


def root_that_is_further_up(f: Forgery) -> bool:
    up = "metadata/../metadata/root.parquet"
    return _retell(f, lambda told: told["snapshots"][-1].__setitem__("root-manifest", up))


def root_that_is_nowhere(f: Forgery) -> bool:
    lost = "metadata/nowhere.parquet"
    return _retell(f, lambda told: told["snapshots"][-1].__setitem__("root-manifest", lost))


def sequence_numbers_beyond_the_last(f: Forgery) -> bool:
    return _set(f, "last-sequence-number", 0)


def row_ids_beyond_the_next(f: Forgery) -> bool:
    return f.writer.next_row_id > 0 and _set(f, "next-row-id", 0)


def order_that_is_not_there(f: Forgery) -> bool:
    return _set(f, "default-sort-order-id", 9)


def order_of_no_direction(f: Forgery) -> bool:
    def change(told: Json) -> None:
        told["sort-orders"][-1]["fields"][0]["direction"] = "up"

    return _retell(f, change)


def mapping_that_is_none(f: Forgery) -> bool:
    def change(told: Json) -> None:
        told["properties"]["schema.name-mapping.default"] = '{"names": 5}'

    return _retell(f, change)


def page_that_is_lost(f: Forgery) -> bool:
    return _pages(f, lambda page: page.__setitem__("location", "metadata/nowhere.page.json"))


def page_of_other_count(f: Forgery) -> bool:
    return _pages(f, lambda page: page.__setitem__("count", page["count"] + 1))


def page_of_other_numbers(f: Forgery) -> bool:
    return _pages(f, lambda page: page.__setitem__("last-sequence-number", 1 << 40))


def page_of_other_times(f: Forgery) -> bool:
    return _pages(f, lambda page: page.__setitem__("first-timestamp-ms", 1))


def _pages(f: Forgery, change: _Change) -> bool:
    """Change what is said of a page of history."""
    document = f.document()
    for page in document.get("snapshot-pages", []):
        change(page)
        return f.retell(document)
    return False
