"""Keys that a process holds: read from a file or the environment, and never shown."""

from __future__ import annotations

import pickle
from base64 import b64encode
from pathlib import Path

import pytest

from icetree.errors import InvalidInput
from icetree.keys.local import VARIABLE, LocalKeys, from_environment, from_file
from icetree.keys.open import open_keeper

KEY, OTHER = b"0123456789012345", b"another key that has 32 bytes..."


def line(key_id: str, key: bytes) -> str:
    return f"{key_id} = {b64encode(key).decode()}"


def test_a_key_is_wrapped_and_unwrapped_by_its_id() -> None:
    keys = LocalKeys({"a": KEY, "b": OTHER})
    wrapped = keys.wrap(b"secret", "a")
    assert b"secret" not in wrapped
    assert keys.unwrap(wrapped, "a") == b"secret"
    with pytest.raises(InvalidInput, match="key 'b' of memory is not the one"):
        keys.unwrap(wrapped, "b")
    with pytest.raises(InvalidInput, match=r"there is no key 'c' in memory, which has 'a', 'b'"):
        keys.unwrap(wrapped, "c")


def test_keys_come_from_a_file_and_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# ours\n\n{line('a', KEY)}\n{line('b', OTHER)}\n")
    monkeypatch.setenv(VARIABLE, f"{line('a', KEY)},{line('b', OTHER)}")
    wrapped = LocalKeys({"b": OTHER}).wrap(b"secret", "b")
    by_kind = [{"encryption.key-file": str(path)}, {"encryption.kms-type": "environment"}]
    opened = [from_file(str(path)), from_environment(), *map(open_keeper, by_kind)]
    for keeper in opened:
        assert keeper is not None
        assert keeper.unwrap(wrapped, "b") == b"secret"
    assert open_keeper({}) is None


def test_the_newest_version_of_a_key_wraps_and_every_version_unwraps(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    former = LocalKeys({"a": KEY}).wrap(b"secret", "a")
    path.write_text(
        f"{line('a', OTHER).replace('= ', '= 10: ')}\n{line('a', KEY).replace('= ', '= 9:')}"
    )
    keys = from_file(str(path))
    newest = keys.wrap(b"secret", "a")
    assert LocalKeys({"a": OTHER}).unwrap(newest, "a") == b"secret"
    assert [keys.unwrap(each, "a") for each in (former, newest)] == [b"secret"] * 2
    assert [keys.is_newest(each, "a") for each in (former, newest)] == [False, True]
    with pytest.raises(InvalidInput, match=r"key 'a' of .* is not the one"):
        keys.unwrap(LocalKeys({"a": b"x" * 16}).wrap(b"secret", "a"), "a")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0123456789012345", "line 1: write the id of a key"),
        ("a = not_base64!", "key 'a' is no base64"),
        (
            f"a = {b64encode(b'short').decode()}",
            "key 'a' of .* has 5 bytes: AES takes 16, 24 or 32",
        ),
        (
            f"{line('a', KEY)}\n{line('a', KEY)}",
            "line 2: there are two keys 'a': number the versions",
        ),
        ("a = 2:eA==\na = 2:eA==", "line 2: there are two keys 'a' of version 2"),
    ],
)
def test_a_bad_file_of_keys_is_refused_and_not_shown(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=why) as error:
        from_file(str(path))
    for secret in ("0123456789", "not_base64", b64encode(KEY).decode()):
        assert secret not in str(error.value)


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    for wrong in (
        {"encryption.kms-type": "file"},
        {"encryption.kms-type": "environment", "encryption.key-file": str(tmp_path)},
        {"encryption.kms-type": "aws"},
        {"encryption.key-file": str(tmp_path / "missing")},
    ):
        with pytest.raises(InvalidInput, match=r"encryption|cannot be read"):
            open_keeper(wrong)


def test_keys_are_in_no_text_form_and_leave_no_process() -> None:
    keys = LocalKeys({"a": KEY})
    assert repr(keys) == "LocalKeys('a'; memory)"
    with pytest.raises(TypeError, match="stay in the process"):
        pickle.dumps(keys)
