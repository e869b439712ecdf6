"""Everything that a writer may do, by name, and how often it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from campaigns.simulate.verbs import (
    bank,
    copies,
    deletes,
    evolution,
    exports,
    files,
    groups,
    maintenance,
    reads,
    refs,
    rows,
)
from campaigns.simulate.world import Verb

#: Verb -> (what carries it out, its share).
_ALL: Final[Mapping[str, tuple[Verb, int]]] = {
    **rows.VERBS,
    **files.VERBS,
    **deletes.VERBS,
    **evolution.VERBS,
    **refs.VERBS,
    **bank.VERBS,
    **reads.VERBS,
    **maintenance.VERBS,
    **exports.VERBS,
    **groups.VERBS,
    **copies.VERBS,
}

VERBS: Final[Mapping[str, Verb]] = {name: verb for name, (verb, _) in _ALL.items()}
WEIGHTS: Final[Mapping[str, int]] = {name: weight for name, (_, weight) in _ALL.items()}
