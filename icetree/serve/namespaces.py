"""Namespaces: list, make, look at, change and drop them."""

from __future__ import annotations

import msgspec

from icetree.errors import InvalidInput
from icetree.serve.call import Call
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import SEPARATOR, dotted, namespace_in_path, namespace_of
from icetree.serve.protocol.pages import page
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import NOTHING, Answer


class CreateNamespace(Body, frozen=True, kw_only=True):
    """A namespace to be."""

    namespace: list[str]
    properties: dict[str, str] = msgspec.field(default_factory=dict)


class UpdateProperties(Body, frozen=True, kw_only=True):
    """Properties to set and to remove."""

    removals: list[str] = msgspec.field(default_factory=list)
    updates: dict[str, str] = msgspec.field(default_factory=dict)


_create = reads(CreateNamespace)
_update = reads(UpdateProperties)


def list_namespaces(call: Call) -> Answer:
    """Tell the namespaces below another, or the outermost ones."""
    parent = call.request.query.get("parent", "")
    above = namespace_in_path(parent) if parent else ()
    if above and not call.who.may_see(above):
        call.require_read(above)
    found = call.lake.catalog.namespaces(above)
    seen = (SEPARATOR.join(each) for each in found if call.who.may_see(each))
    shown, following = page(sorted(seen), call.request.query)
    return Answer(
        document={
            "namespaces": [each.split(SEPARATOR) for each in shown],
            "next-page-token": following,
        }
    )


def create_namespace(call: Call) -> Answer:
    """Make a namespace."""
    asked = _create(call.request.body)
    namespace = namespace_of(asked.namespace)
    call.require_write(namespace)
    call.lake.create_namespace(dotted(namespace), asked.properties)
    return Answer(document={"namespace": namespace, "properties": asked.properties})


def load_namespace(call: Call) -> Answer:
    """Tell a namespace's properties."""
    properties = call.lake.catalog.namespace_properties(call.namespace)
    return Answer(document={"namespace": call.namespace, "properties": properties})


def namespace_exists(call: Call) -> Answer:
    """Tell by the status whether a namespace is there."""
    call.lake.catalog.namespace_properties(call.namespace)
    return NOTHING


def update_namespace(call: Call) -> Answer:
    """Set and remove properties in one step."""
    asked = _update(call.request.body)
    if both := sorted(asked.updates.keys() & set(asked.removals)):
        raise Refused(422, "UnprocessableEntityException", f"{both} cannot be both set and removed")
    name = dotted(call.namespace)
    before = call.lake.catalog.namespace_properties(call.namespace)
    call.lake.update_namespace(name, asked.updates, asked.removals)
    removals = dict.fromkeys(asked.removals)
    return Answer(
        document={
            "updated": list(asked.updates),
            "removed": [each for each in removals if each in before],
            "missing": [each for each in removals if each not in before],
        }
    )


def drop_namespace(call: Call) -> Answer:
    """Remove an empty namespace."""
    # The lake's own words would hint at names that the client may have no right to see.
    call.lake.catalog.namespace_properties(call.namespace)
    try:
        call.lake.drop_namespace(dotted(call.namespace))
    except InvalidInput as error:
        # It is there, and its name is one: what is wrong is that it holds something.
        raise Refused(409, "NamespaceNotEmptyException", str(error)) from None
    return NOTHING
