"""A view's metadata file made, and swapped for the next: files first, then one swap.

Nothing points to a file until its swap. One whose swap certainly lost is deleted; where the answer was
lost nothing is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from icetree.catalog.base import Catalog, Outcome, Stale, Swapped, Unknown, ViewName
from icetree.codec import view as view_codec
from icetree.errors import (
    CommitConflict,
    CommitExhausted,
    CommitUnknown,
    IcetreeError,
    NotFound,
    Unavailable,
)
from icetree.spec.location import absolute
from icetree.spec.metadata.view import ViewMetadata
from icetree.spec.properties.names import METADATA_COMPRESSION, METADATA_COMPRESSIONS
from icetree.spec.properties.values import choice
from icetree.store.base import Store
from icetree.table.commit.attempt import next_metadata_location
from icetree.table.commit.backoff import between_questions, between_tries
from icetree.table.naming import discard

#: How often a swap is asked for that did not reach the catalog.
_ASKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """A view as of one metadata file."""

    name: ViewName
    metadata: ViewMetadata
    #: Absolute.
    metadata_location: str

    def at(self, metadata: ViewMetadata, metadata_location: str) -> ViewState:
        """Return the same view as of another metadata file; NotFound where that is another view."""
        was, now = self.metadata.view_uuid, metadata.view_uuid
        if was != now:
            raise NotFound(
                f"view {self.name} is another view now ({now}; it was {was}, which was dropped or "
                "given another name): load it again to go on with the new one"
            )
        return ViewState(name=self.name, metadata=metadata, metadata_location=metadata_location)


def read_view(store: Store, location: str) -> ViewMetadata:
    """Return the view metadata at an absolute location."""
    return view_codec.decode(store.read(location), file=location)


def write_view(store: Store, metadata: ViewMetadata, previous: str | None = None) -> str:
    """Write a metadata file that follows another, and return where it is; no catalog has it yet."""
    how = choice(metadata.properties, METADATA_COMPRESSION, METADATA_COMPRESSIONS, default="none")
    compress = how == "gzip"
    at = absolute(next_metadata_location(previous, compress=compress), metadata.location)
    store.write_new(at, view_codec.encode(metadata, compress=compress))
    return at


def change_view(
    state: ViewState,
    change: Callable[[ViewMetadata], ViewMetadata],
    *,
    catalog: Catalog,
    store: Callable[[str], Store],
) -> ViewState:
    """Make a change on the newest state of a view, and return what it is then.

    A change that lost its race is made again on what won: `change` refuses what does not fit there.
    CommitConflict when the view is gone, CommitExhausted, CommitUnknown.
    """
    name = state.name
    for pause in between_tries(state.metadata.properties):
        after = change(state.metadata)
        if after == state.metadata:
            return state
        at = write_view(store(state.metadata_location), after, state.metadata_location)
        try:
            outcome = _swap(catalog, state, at, after)
        except IcetreeError:
            # Raised only where nothing was swapped in.
            discard(store(at), at)
            raise
        match outcome:
            case Swapped():
                return ViewState(name=name, metadata=after, metadata_location=at)
            case Unknown(reason=reason):
                raise CommitUnknown(
                    f"view {name}: the change may or may not have been made ({reason}); load the "
                    "view and look before trying again"
                )
        discard(store(at), at)
        pause()
        state = newest(state, catalog, store)
    raise CommitExhausted(f"view {name}: every try lost to another change; try again later")


def newest(state: ViewState, catalog: Catalog, store: Callable[[str], Store]) -> ViewState:
    """Return a view as it is now; CommitConflict where its name is gone, or another's."""
    try:
        at = catalog.load(state.name)
        return state.at(read_view(store(at), at), at)
    except NotFound as error:
        raise CommitConflict(str(error)) from None


def _swap(catalog: Catalog, state: ViewState, at: str, after: ViewMetadata) -> Outcome:
    """Swap, and ask again when the answer is lost: it happens once at most.

    Raises only when it certainly did not happen.
    """
    doubt: str | None = None
    unsent: IcetreeError = Unavailable("never asked")
    for ask, pause in enumerate(between_questions(after.properties), 1):
        match _asked(catalog, state, at):
            case Swapped():
                return Swapped()
            case Stale() as stale if doubt is None:
                return stale
            case Unknown(reason=reason):
                doubt = reason
            case Unavailable() as unsent if doubt is not None or ask < _ASKS:
                pass
            case IcetreeError() as error if doubt is None:
                # No ask has changed anything.
                raise error
            case IcetreeError() as error:
                return Unknown(reason=f"{doubt}; then {error}")
            case Stale():
                # Another change came after ours, or instead of it: view metadata does not say.
                return Unknown(reason=f"{doubt}; then another change was found")
        pause()
    if doubt is None:
        raise unsent
    return Unknown(reason=doubt)


def _asked(catalog: Catalog, state: ViewState, at: str) -> Outcome | IcetreeError:
    """Ask once; a conflict is that the name is gone."""
    try:
        outcome = catalog.swap(state.name, expected=state.metadata_location, to=at)
    except NotFound as error:
        return CommitConflict(str(error))
    except CommitUnknown as lost:
        return Unknown(reason=str(lost))
    except IcetreeError as error:
        return error
    if isinstance(outcome, Stale) and outcome.metadata_location == at:
        return Swapped()
    return outcome
