"""What a caller can act on: one small tree of exceptions, grouped by what to do next."""

from __future__ import annotations

from icetree.visible import visible


class IcetreeError(Exception):
    """The root of every error icetree raises on purpose."""

    def __str__(self) -> str:
        # What it names may be a hostile table's, and tracebacks and logs end in terminals: a newline
        # there would begin a line that somebody else wrote.
        return visible(super().__str__())


class NotFound(IcetreeError):
    """A table, snapshot, ref, column or file that was named does not exist."""


class AlreadyExists(IcetreeError):
    """The name is taken."""


class InvalidInput(IcetreeError):
    """The request cannot be carried out as it stands; nothing was changed."""


class CommitConflict(IcetreeError):
    """Another commit changed what this one relies on: read again, then decide."""


class CommitExhausted(CommitConflict):
    """Every retry lost its race; nothing was changed, and trying later may succeed."""


class CommitUnknown(IcetreeError):
    """The outcome of a commit could not be learnt: it may or may not have happened."""


class Unavailable(IcetreeError):
    """A catalog or store could not be reached or was busy: nothing was changed, try later."""


class CorruptTable(IcetreeError):
    """Stored bytes break a rule of the format.

    The message names the file and the rule, so that one can find the writer at fault.
    """

    def __init__(self, file: str, rule: str) -> None:
        super().__init__(f"{file}: {rule}")
        self.file = file
        self.rule = rule

    def __reduce__(self) -> tuple[type[CorruptTable], tuple[str, str]]:
        return type(self), (self.file, self.rule)


class TooLarge(CorruptTable):
    """Stored bytes would take more memory than is allowed: damaged, hostile, or a limit too low."""


class Unsupported(IcetreeError):
    """Valid in the format, but not something this version of icetree can do."""
