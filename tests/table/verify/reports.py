"""What a report of verifying comes to."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Content, Entries, with_columns
from icetree.table.verify.findings import Kind, Report


def kinds(report: Report, file: str | None = None) -> set[Kind]:
    return {each.kind for each in report.findings if file in (None, each.file)}


def rules(report: Report) -> str:
    return "\n".join(map(str, report.findings))


def at_first(entries: Entries, content: Content, **columns: object) -> Entries:
    """Return a root in which the first entry of a content says something else."""
    at = pc.index(entries["content_type"], int(content)).as_py()
    for name, value in columns.items():
        values = entries[name].to_pylist()
        values[at] = value
        entries = with_columns(entries, **{name: pa.array(values, entries[name].type)})
    return entries
