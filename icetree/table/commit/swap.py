"""The swap at the end of a commit, and finding out what became of it when the answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icetree.catalog.base import Catalog, Outcome, Stale, Swapped, Unknown
from icetree.errors import (
    CommitConflict,
    CommitUnknown,
    IcetreeError,
    NotFound,
    Unavailable,
)
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.location import stored_form
from icetree.spec.metadata.pages import history
from icetree.table.commit.attempt import Attempt
from icetree.table.commit.backoff import between_questions
from icetree.table.state import State, Work


@contextmanager
def still_there() -> Iterator[None]:
    """Tell a commit of a table whose name is gone, or another table's now, as the conflict it is."""
    try:
        yield
    except NotFound as error:
        raise CommitConflict(str(error)) from None


#: How often a swap is asked for that did not reach the catalog: one that is closed is told soon.
_ASKS = 5


def swap(work: Work, catalog: Catalog, head: State, attempt: Attempt, files: TableFiles) -> Outcome:
    """Swap, and find out what happened when the answer is lost.

    Asking again for the same swap is safe: it can only happen once, and whether it did is told
    by the head being ours or descending from ours. Raises only when it certainly did not happen.
    """
    ours = attempt.state.metadata_location
    doubt: str | None = None
    unsent: Unavailable | None = None
    for ask, pause in enumerate(between_questions(attempt.state.metadata.properties), 1):
        try:
            with still_there():
                outcome = catalog.swap(work.base.name, expected=head.metadata_location, to=ours)
            # Without a lost answer, an answer is the truth.
            if isinstance(outcome, Stale) and (doubt or outcome.metadata_location == ours):
                return _whose(outcome, head, attempt, files)
            if not isinstance(outcome, Unknown):
                return outcome
            doubt = outcome.reason
        except CommitUnknown as lost:
            doubt = str(lost)
        except Unavailable as error:
            # This ask changed nothing; one before it whose answer was lost may have.
            unsent = error
            if doubt is None and ask >= _ASKS:
                break
        except IcetreeError as error:
            if doubt is None:
                raise
            return Unknown(reason=f"{doubt}; then {error}")
        pause()
    if doubt is None and unsent is not None:
        raise unsent
    return Unknown(reason=doubt or "never asked")


def _whose(stale: Stale, before: State, attempt: Attempt, files: TableFiles) -> Outcome:
    """Tell whether the head that a swap met was made on top of the attempt or instead of it.

    Both went from the same head `before`. Unknown when too much happened since: asking again
    would not help.
    """
    location = stale.metadata_location
    if location == attempt.state.metadata_location:
        return Swapped()
    metadata = read_metadata(files.store, location)
    if metadata.table_uuid != attempt.state.metadata.table_uuid:
        return Unknown(reason=f"{location} is of another table, which has taken the name")
    former = {stored_form(each.metadata_file, metadata.location) for each in metadata.metadata_log}
    if stored_form(attempt.state.metadata_location, metadata.location) in former:
        return Swapped()
    if stored_form(before.metadata_location, metadata.location) in former:
        return stale
    mine = attempt.snapshot
    if mine is not None:
        if metadata.last_sequence_number < mine.sequence_number:
            return stale
        for each in history(metadata, files.page):
            # A sequence number is given once: who has ours tells who won.
            if each.sequence_number == mine.sequence_number:
                return Swapped() if each.snapshot_id == mine.snapshot_id else stale
    return Unknown(reason=f"{location} was made too many commits later to tell")
