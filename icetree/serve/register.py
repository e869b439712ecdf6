"""Tables that are there already: given a name by their newest metadata file."""

from __future__ import annotations

from icetree.catalog.base import TableName
from icetree.errors import InvalidInput, NotFound
from icetree.serve.access.places import require_place
from icetree.serve.access.who import EVERYWHERE
from icetree.serve.call import Call
from icetree.serve.files.folders import folder_in
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import table_of
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer
from icetree.serve.tables import require_version, shown_after


class Register(Body, frozen=True, kw_only=True):
    """A name, and where the metadata of its table is."""

    name: str
    metadata_location: str
    overwrite: bool | None = False


_read = reads(Register)


def register_table(call: Call) -> Answer:
    """Give a table a name; its metadata is in a folder where tables of the namespace go.

    With `overwrite` the name may be another table's, as in other catalogs: who may do so may drop that,
    too. Whoever writes to the former one is told that it is another now.
    """
    require_version(call)
    asked = _read(call.request.body)
    name = table_of(call.namespace, asked.name)
    # A metadata file names others, anywhere: who registers one must be free to read all of them.
    call.require_write(EVERYWHERE)
    folder, slash, file = asked.metadata_location.rpartition("/metadata/")
    if not slash or "/" in file or not file.endswith((".metadata.json", ".metadata.json.gz")):
        raise InvalidInput(
            f"{asked.metadata_location!r} is no metadata file of a table: they are at "
            "…/metadata/….metadata.json"
        )
    overwrites = bool(asked.overwrite)
    if not (overwrites and folder == _folder_now(call, name)):
        require_place(call.lake, name, folder)
    call.lake.catalog.namespace_properties(call.namespace)
    try:
        made = call.lake.register_table(str(name), asked.metadata_location, overwrite=overwrites)
    except NotFound as error:
        raise Refused(400, "BadRequestException", str(error)) from None
    return shown_after(call, name, made)


def _folder_now(call: Call, name: TableName) -> str | None:
    """Return the folder of the table that has the name: its former metadata is as good a place."""
    try:
        return folder_in(call.lake.catalog.load(name))
    except NotFound:
        return None
