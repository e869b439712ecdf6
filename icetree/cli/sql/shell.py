"""The shell of `icetree sql`: history, completion, and errors that do not end it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from icetree.cli.refusal import Refusal
from icetree.cli.sql.statements import split, statements
from icetree.errors import IcetreeError

if TYPE_CHECKING:
    from icetree.cli.sql.run import Runner
    from icetree.table.lake import Lake

_LEAVE: Final = frozenset({"exit", "quit", "\\q"})
_HELP: Final = (
    "A statement ends with a semicolon. Tab completes, Up brings back, Ctrl-C forgets the line,\n"
    "Ctrl-D or exit leaves. SHOW TABLES IN a namespace lists tables, DESCRIBE shows one."
)
_KEYWORDS: Final = re.findall(
    r"\w+",
    """
    ADD ALTER AND AS ASC BETWEEN BY CALL CASE COLUMN COUNT CREATE DELETE DESC DESCRIBE DISTINCT DROP
    ELSE END EXISTS EXPLAIN FIELD FROM GROUP HAVING IN INSERT INTO IS JOIN LEFT LIKE LIMIT MATCHED
    MERGE NAMESPACES NOT NULL ON OR ORDER OVERWRITE PARTITION PARTITIONED RENAME SELECT SET SHOW SUM
    TABLE TABLES THEN TIMESTAMP TO UPDATE USING VALUES VERSION VIEW WHEN WHERE WITH
    """,
)


#: Names that stand in SQL as they are, and so end no statement and begin none.
_NAME: Final = re.compile(r"[\w.]+")


class Shows(Protocol):
    """What carries out a statement."""

    def __call__(self, statement: str) -> None: ...


def shell(run: Runner) -> None:
    """Ask for statements and run them, until one leaves."""
    words = Words(lambda: names_in(run.lake))
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=words,
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
    )
    print("SQL on local Spark; help tells more, Ctrl-D leaves.")
    loop(session, run.show)


def loop(session: PromptSession[str], show: Shows) -> None:
    """Ask for statements, and let each be shown; what one refuses ends nothing."""
    while True:
        try:
            text = session.prompt(
                "sql> ",
                multiline=Condition(lambda: not _ends(session.default_buffer.text)),
                prompt_continuation=lambda *_: "  -> ",
            )
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        word = text.strip().rstrip(";").lower()
        if word in _LEAVE:
            return
        if word == "help":
            print(_HELP)
            continue
        for each in statements(text):
            if not _shown(each, show):
                break


def _ends(text: str) -> bool:
    """Tell whether what was typed can be run: nothing is left after the last semicolon."""
    word = text.strip().lower()
    return not word or word in _LEAVE | {"help"} or not split(text)[1].strip()


def _shown(statement: str, show: Shows) -> bool:
    try:
        show(statement)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return False
    except IcetreeError as error:
        Refusal.of(error).show()
        return False
    except Exception as error:  # whatever Spark raises, the shell goes on
        Refusal(type(error).__name__, str(error).strip().partition("\n")[0]).show()
        return False
    return True


class Words(Completer):
    """Completes keywords, and what the lake has a name for."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor may become."""
        del complete_event
        word = document.get_word_before_cursor(WORD=True).rpartition("(")[2].rpartition(",")[2]
        if not word:
            return
        for name in sorted({*self._names()}):
            if name.lower().startswith(word.lower()) and _NAME.fullmatch(name):
                yield Completion(name, start_position=-len(word))
        for keyword in _KEYWORDS:
            if keyword.startswith(word.upper()):
                yield Completion(keyword, start_position=-len(word))


def names_in(lake: Lake) -> Iterator[str]:
    """Yield the namespaces, tables and columns of a lake, as far as they can be read."""
    try:
        yield from lake.namespaces()
        for name in lake.tables():
            yield name
            yield from (field.name for field in lake.table(name).schema.fields)
    except IcetreeError:
        return


def _history() -> History:
    """Return the statements of former days, in a file that only its owner reads."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    file = Path(state, "icetree", "sql-history")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
