"""Statements cut into clauses."""

from __future__ import annotations

import pytest

from icetree.errors import InvalidInput
from icetree.spark.tokens import Cursor, qualifiers, tokens


def test_words_know_strings_comments_names_and_numbers() -> None:
    text = "SELECT 'it''s', \"a\\\"b\", `x``y`, 1.5e3, r'\\' -- no\n /* nor this */ FROM t"
    assert [token.text for token in tokens(text)] == [
        *("SELECT", "'it''s'", ",", '"a\\"b"', ",", "`x``y`", ",", "1.5e3", ",", "r'\\'"),
        *("FROM", "t"),
    ]


@pytest.mark.parametrize(
    "text",
    ["a -- b\r c", "a -- b \\\n b\n c", "a /* b /* b */ b */ c", "/**/ a /* b * / /*/* b */*/ */c"],
)
def test_a_comment_ends_where_it_does_to_spark(text: str) -> None:
    assert [token.text for token in tokens(text)] == ["a", "c"]


def test_names_lose_their_backticks() -> None:
    assert Cursor("`d b`.`x``y`.t rest").name() == ["d b", "x`y", "t"]


def test_a_clause_ends_at_a_word_outside_brackets_and_cases() -> None:
    cursor = Cursor("f(a when b) + case when x then end_of end when matched")
    assert cursor.until("WHEN") == "f(a when b) + case when x then end_of end"
    assert cursor.accept("WHEN", "MATCHED")


def test_brackets_are_parted_at_their_own_commas() -> None:
    assert Cursor("(a, f(b, c), (d), 'e,f')").bracket() == ["a", "f(b, c)", "(d)", "'e,f'"]
    assert Cursor("()").bracket() == []


def test_a_qualifier_is_a_whole_name_before_a_dot() -> None:
    text = "db.t.a + x.db.t.b + `DB`.t.c + db.tt.d"
    assert [text[run[0].start : run[-1].stop] for run in qualifiers(text, ["db", "t"])] == [
        "db.t.",
        "`DB`.t.",
    ]


def test_what_is_missing_is_told_with_its_place() -> None:
    cursor = Cursor("ALTER TABLE t\nWRITE wrong")
    assert cursor.accept("ALTER", "TABLE")
    cursor.name()
    cursor.expect("WRITE")
    with pytest.raises(
        InvalidInput, match=r"expected ORDERED BY, found 'wrong' \(line 2, pos\w+ 6"
    ):
        cursor.expect("ORDERED", "BY")
