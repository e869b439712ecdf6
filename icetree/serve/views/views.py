"""Views: list them, tell whether one is there, show one, give it another name, drop it."""

from __future__ import annotations

import hashlib

import msgspec

from icetree.catalog.base import ViewName
from icetree.codec import view as view_codec
from icetree.errors import InvalidInput, NotFound
from icetree.serve.access.places import require_place
from icetree.serve.access.who import EVERYWHERE
from icetree.serve.call import Call
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import view_of
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import NOTHING, Answer
from icetree.serve.tables import Rename, listing
from icetree.table.views.view import View


class RegisterView(Body, frozen=True, kw_only=True):
    """A name, and where the metadata of its view is."""

    name: str
    metadata_location: str


_rename = reads(Rename)
_register = reads(RegisterView)


def list_views(call: Call) -> Answer:
    """Tell the views of a namespace."""
    return listing(call, call.lake.catalog.views(call.namespace))


def view_exists(call: Call) -> Answer:
    """Tell by the status whether a view is there."""
    call.lake.catalog.load(call.view_name)
    return NOTHING


def load_view(call: Call) -> Answer:
    """Show a view; a client that has it as it is need not read it again."""
    tag = _etag(call.lake.catalog.load(call.view_name))
    if call.request.has(tag):
        return Answer(status=304, headers={"etag": tag})
    return shown_view(call.view())


def drop_view(call: Call) -> Answer:
    """Remove a view's name."""
    call.lake.catalog.load(call.view_name)
    call.lake.drop_view(str(call.view_name))
    return NOTHING


def rename_view(call: Call) -> Answer:
    """Give a view another name, in another namespace too."""
    asked = _rename(call.request.body)
    source, destination = (
        ViewName(each.namespace, each.name)
        for each in (asked.source.table, asked.destination.table)
    )
    for each in (source, destination):
        call.require_write(each.namespace)
    call.lake.catalog.load(source)
    try:
        call.lake.catalog.namespace_properties(destination.namespace)
    except NotFound as error:
        raise Refused(404, "NoSuchNamespaceException", str(error)) from None
    call.lake.rename_view(str(source), str(destination))
    return NOTHING


def register_view(call: Call) -> Answer:
    """Give a view a name; its metadata is in a folder where tables of the namespace go."""
    asked = _register(call.request.body)
    name = view_of(call.namespace, asked.name)
    # As for tables: a client may not choose among metadata files unless it may read all of them.
    call.require_write(EVERYWHERE)
    folder, slash, file = asked.metadata_location.rpartition("/metadata/")
    if not slash or "/" in file or not file.endswith((".metadata.json", ".metadata.json.gz")):
        raise InvalidInput(
            f"{asked.metadata_location!r} is no metadata file of a view: they are at "
            "…/metadata/….metadata.json"
        )
    require_place(call.lake, name, folder)
    call.lake.catalog.namespace_properties(call.namespace)
    try:
        return shown_view(call.lake.register_view(str(name), asked.metadata_location))
    except NotFound as error:
        raise Refused(400, "BadRequestException", str(error)) from None


def shown_view(view: View) -> Answer:
    """Return a view as an answer."""
    at = view.state.metadata_location
    return Answer(
        document={
            "metadata-location": at,
            "metadata": msgspec.Raw(view_codec.encode(view.metadata)),
            "config": {},
        },
        headers={"etag": _etag(at)},
    )


def _etag(metadata_location: str) -> str:
    return f'"{hashlib.sha256(metadata_location.encode()).hexdigest()[:32]}"'
