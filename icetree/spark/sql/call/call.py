"""`CALL system.expire_snapshots(table => 'db.t')`: procedures by Iceberg's names and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from icetree.errors import InvalidInput, NotFound, Unsupported
from icetree.spark.complaints import one_line, plainly
from icetree.spark.frames import arrow_frame
from icetree.spark.progress import telling
from icetree.spark.sql.call.procedure import Parameter, Procedure
from icetree.spark.sql.call.procedures import ELSEWHERE, PROCEDURES
from icetree.spark.sql.names import without_catalog
from icetree.spark.trees import as_column, kind, seq
from icetree.spec.texts import did_you_mean

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_NAMESPACE: Final = "system"


def run_call(lake: SparkLake, plan: Any) -> DataFrame | None:
    """Carry out a procedure and return what it tells; None for one of another catalog of Spark's."""
    [unresolved] = seq(plan.children())
    *above, name = seq(unresolved.nameParts())
    if len(above) == 2 and _is_sparks(lake, above[0]):
        return None
    procedure = _procedure([*above, name])
    said = f"CALL {_NAMESPACE}.{name.lower()}"
    given = _values(lake, _matched(procedure, plan, said), said)
    if "table" in given:
        catalogs = {each.lower() for each in (*above[:-1], lake.catalog.name)}
        given["table"] = without_catalog(lake, given["table"], catalogs)
    with telling(lake.spark, said) as tell:
        if procedure.tells:
            given["progress"] = tell
        rows = [
            dict(zip(procedure.gives.names, row, strict=True))
            for row in procedure.run(lake, **given)
        ]
    return arrow_frame(lake.spark, pa.Table.from_pylist(rows, schema=procedure.gives))


def _is_sparks(lake: SparkLake, catalog: str) -> bool:
    """Tell whether Spark has a catalog of this name, whose procedures are its own."""
    return lake.spark.conf.get(f"spark.sql.catalog.{catalog}", None) is not None


def _procedure(parts: Sequence[str]) -> Procedure:
    """Return the procedure of a name; a catalog's name may stand before it."""
    *above, name = [part.lower() for part in parts]
    called = ".".join(parts)
    if above[-1:] != [_NAMESPACE] or len(above) > 2:
        known = f": CALL {_NAMESPACE}.{name}" if name in PROCEDURES else ""
        raise NotFound(f"there is no procedure {called}; all are in {_NAMESPACE}{known}")
    if name in ELSEWHERE:
        raise Unsupported(f"{_NAMESPACE}.{name} is not there: {ELSEWHERE[name]}")
    if name not in PROCEDURES:
        near = did_you_mean(name, PROCEDURES) or f"; there are {', '.join(sorted(PROCEDURES))}"
        raise NotFound(f"there is no procedure {called}{near}")
    return PROCEDURES[name]


# --- arguments ---------------------------------------------------------------------------------


def _matched(procedure: Procedure, plan: Any, said: str) -> dict[Parameter, Any]:
    """Return the expression that each parameter is given: all by name, or all by position."""
    known, given = procedure.parameters, seq(plan.args())
    by_name = [each for each in given if kind(each) == "NamedArgumentExpression"]
    if by_name and len(by_name) < len(given):
        raise InvalidInput(f"{said}: give all arguments by name, with =>, or all by position")
    if len(given) > len(known):
        raise InvalidInput(f"{said} takes {', '.join(known)}: {len(given)} arguments are too many")
    if by_name:
        found = _named(procedure, by_name, said)
    else:
        found = dict(zip(known.values(), given, strict=False))
    missing = [each.name for each in procedure.takes if each.required and each not in found]
    if missing:
        raise InvalidInput(f"{said} needs {' and '.join(missing)}: {missing[0]} => …")
    return found


def _named(procedure: Procedure, given: Sequence[Any], said: str) -> dict[Parameter, Any]:
    known, found = procedure.parameters, {}
    for each in given:
        name = each.key().lower()
        parameter = known.get(name)
        if parameter is None:
            raise InvalidInput(
                f"{said} takes no {each.key()!r}, but {', '.join(known)}{did_you_mean(name, known)}"
            )
        if parameter in found:
            raise InvalidInput(f"{said}: {name} is given twice")
        found[parameter] = each.value()
    return found


def _values(lake: SparkLake, given: Mapping[Parameter, Any], said: str) -> dict[str, Any]:
    """Return what the arguments come to; one that is null is not given."""
    # A row without columns, so that an argument that names one is refused.
    nothing = lake.spark.sql("SELECT 1").select()
    columns: dict[Parameter, Column] = {}
    for parameter, expression in given.items():
        column = as_column(lake.spark, expression)
        with plainly():
            [field] = nothing.select(column).schema
        if field.dataType.typeName() == "void":
            _require_optional(parameter, said)
        elif parameter.refused is not None:
            raise Unsupported(f"{said}: {parameter.name} is not taken: {parameter.refused}")
        elif not parameter.kind.takes(field.dataType):
            raise _refused(parameter, expression, said)
        elif not parameter.idle:
            columns[parameter] = parameter.kind.plain(column)
    with one_line():
        [row] = nothing.select(*columns.values()).collect() if columns else [()]
    found = {}
    for parameter, value in zip(columns, row, strict=True):
        if value is None:
            raise _refused(parameter, given[parameter], said)
        found[parameter.ours or parameter.name] = parameter.kind.read(value)
    return found


def _require_optional(parameter: Parameter, said: str) -> None:
    if parameter.required:
        raise InvalidInput(f"{said}: {parameter.name} is null: give {parameter.kind.told}")


def _refused(parameter: Parameter, expression: Any, said: str) -> InvalidInput:
    return InvalidInput(
        f"{said}: {parameter.name} => {expression.sql()}: give {parameter.kind.told}"
    )
