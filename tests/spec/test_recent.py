"""A memory that forgets: bounded, whoever asks and whenever."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from icetree.spec.recent import Recent


def test_what_was_used_last_is_kept() -> None:
    memory: Recent[str, int] = Recent(most=2)
    memory.put("a", 1)
    memory.put("b", 2)
    assert memory.get("a") == 1
    memory.put("c", 3)
    assert [memory.get(key) for key in "abc"] == [1, None, 3]
    memory.put("a", 4)
    assert (memory.get("a"), len(memory)) == (4, 2)


def test_it_is_found_by_what_fits_too_the_last_used_first() -> None:
    memory: Recent[bytes, int] = Recent(most=2)
    memory.put(b"ab", 1)
    memory.put(b"a", 2)
    assert memory.first(b"abc".startswith) == 2
    assert memory.first(b"b".startswith) is None
    assert memory.first(lambda key: key == b"ab") == 1
    memory.put(b"c", 3)
    assert memory.get(b"a") is None


def test_it_never_holds_more_than_it_may_whoever_puts() -> None:
    memory: Recent[int, int] = Recent(most=8)

    def work(first: int) -> int:
        for at in range(500):
            memory.put(first * 10_000 + at % 20, at)
            memory.get(at)
        return len(memory)

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(work, range(8))) <= 8
