"""Tables that are there already: given a name by their newest metadata file."""

from __future__ import annotations

from icetree.errors import InvalidInput, NotFound
from icetree.serve.access.who import EVERYWHERE
from icetree.serve.bodies import Body, reads
from icetree.serve.call import Call
from icetree.serve.names import table_of
from icetree.serve.places import require_place
from icetree.serve.refusals import Refused
from icetree.serve.request import Answer
from icetree.serve.tables import shown_after


class Register(Body, frozen=True, kw_only=True):
    """A name, and where the metadata of its table is."""

    name: str
    metadata_location: str
    overwrite: bool | None = False


_read = reads(Register)


def register_table(call: Call) -> Answer:
    """Give a table a name; its metadata is in a folder where tables of the namespace go."""
    asked = _read(call.request.body)
    name = table_of(call.namespace, asked.name)
    # A metadata file names others, anywhere: who registers one must be free to read all of them.
    call.require_write(EVERYWHERE)
    if asked.overwrite:
        raise InvalidInput("a table is not put in the place of another: drop that one first")
    folder, slash, file = asked.metadata_location.rpartition("/metadata/")
    if not slash or "/" in file or not file.endswith((".metadata.json", ".metadata.json.gz")):
        raise InvalidInput(
            f"{asked.metadata_location!r} is no metadata file of a table: they are at "
            "…/metadata/….metadata.json"
        )
    require_place(call.lake, name, folder)
    call.lake.catalog.namespace_properties(call.namespace)
    try:
        made = call.lake.register_table(str(name), asked.metadata_location)
    except NotFound as error:
        raise Refused(400, "BadRequestException", str(error)) from None
    return shown_after(call, name, made)
