"""How long a catalog's database may take, unless the connection says otherwise."""

from __future__ import annotations

from typing import Final

#: To open a connection, for each host of an address.
CONNECT_TIMEOUT_S: Final = 5.0
#: To answer a statement, or to let go of a lock.
REQUEST_TIMEOUT_S: Final = 30.0
#: To give a turn. Whoever has one and hangs delays the others by no more than this.
TURN_TIMEOUT_S: Final = 10.0
#: To stand in a line that gets on, before one races with those who do.
LINE_TIMEOUT_S: Final = 120.0
