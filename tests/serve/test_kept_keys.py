"""A key of tokens that the server keeps by itself, beside the grants."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icetree.errors import InvalidInput
from icetree.serve.access.grants import new_secret
from icetree.serve.access.kept import kept_key
from icetree.serve.access.tokens import Tokens


def test_a_key_is_kept_beside_the_grants_for_the_servers_that_come(tmp_path: Path) -> None:
    grants = str(tmp_path / "grants.yaml")
    key = kept_key(grants)
    assert key is not None
    assert (tmp_path / "grants.yaml.key").stat().st_mode & 0o777 == 0o600
    token = Tokens(key).give("etl")
    assert Tokens(kept_key(grants)).read(token, lambda _: "") == "etl"
    assert kept_key(str(tmp_path / "others.yaml")) not in (None, key)
    assert len([*tmp_path.iterdir()]) == 2


def test_of_servers_that_start_at_once_all_have_one_key(tmp_path: Path) -> None:
    grants = str(tmp_path / "grants.yaml")
    with ThreadPoolExecutor(16) as pool:
        keys = {*pool.map(kept_key, [grants] * 64)}
    assert len(keys) == 1
    assert None not in keys
    assert [each.name for each in tmp_path.iterdir()] == ["grants.yaml.key"]


def _open_to_others(place: Path) -> None:
    place.write_text(new_secret())
    place.chmod(0o640)


def _led_elsewhere(place: Path) -> None:
    elsewhere = place.with_name("elsewhere")
    elsewhere.write_text(new_secret())
    elsewhere.chmod(0o600)
    place.symlink_to(elsewhere)


def _no_key(place: Path) -> None:
    place.touch(mode=0o600)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (_open_to_others, "may be known to others: delete it"),
        (_led_elsewhere, "cannot be read"),
        (Path.mkdir, "cannot be read"),
        (_no_key, "fewer than 32"),
    ],
)
def test_a_kept_key_that_others_may_know_is_refused_and_stays_as_it_is(
    tmp_path: Path, found: Callable[[Path], None], reason: str
) -> None:
    place = tmp_path / "grants.yaml.key"
    found(place)
    before = place.lstat()
    with pytest.raises(InvalidInput, match=reason):
        kept_key(str(tmp_path / "grants.yaml"))
    after = place.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)  # fmt: skip


def test_where_nothing_can_be_kept_there_is_no_key(tmp_path: Path) -> None:
    assert kept_key(str(tmp_path / "nowhere" / "grants.yaml")) is None
