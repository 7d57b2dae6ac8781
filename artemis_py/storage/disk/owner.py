"""Who has a data directory: one line in its ``server.lock``, for people and for the other broker of a pair."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

LOCK_NAME: Final = "server.lock"
_MARK: Final = b"artemis_py "
_LENGTH_MAX: Final = 1024
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"

ACTIVE: Final = "active"
"""The state of a store whose broker works, or died: a backup takes over."""
STOPPED: Final = "stopped"
"""The state of a store whose broker was stopped and is to be started again: a backup waits."""
UNUSED: Final = "unused"
"""The state of a store that no broker has used yet: a backup waits, too. Beside a journal it means that nobody knows:
the file that said more is lost. Then a free lock says enough, and a backup takes over.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """``process`` is its id on ``host``, which has started with the id ``boot``; ``since`` is a date in UTC, in ISO
    8601. A line of an older version has only the process. ``state`` is that of the store.
    """

    process: int
    host: str = ""
    boot: str = ""
    since: str = ""
    state: str = UNUSED

    @property
    def text(self) -> bytes:
        """The line."""
        fields = {"process": self.process, "host": self.host, "boot": self.boot, "since": self.since}
        parts = [f"{name}={value}" for name, value in fields.items()]
        return _MARK + " ".join([*parts, f"state={self.state}"]).encode("ascii", "replace") + b"\n"

    @property
    def shown(self) -> str:
        """``process 12 on host a since 2026-11-23T18:54:21Z``."""
        host = f" on host {self.host}" if self.host else ""
        since = f" since {self.since}" if self.since else ""
        return f"process {self.process}{host}{since}"

    def is_same(self, other: Owner | None) -> bool:
        """Is it the same process, whatever the state of its store?"""
        return other is not None and replace(other, state=self.state) == self


def this_process(state: str) -> Owner:
    """The owner that this process is from now on."""
    boot = ""
    with suppress(OSError):
        boot = Path(_BOOT_ID).read_text("ascii").strip()
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    host = "".join(one for one in socket.gethostname() if one.isprintable() and not one.isspace())
    return Owner(process=os.getpid(), host=host, boot=boot, since=since, state=state)


def is_of_artemis(content: bytes) -> bool:
    """Has Artemis made this lock file?"""
    return bool(content) and not content.isdigit() and not content.startswith(_MARK)


def place_of_owner(content: bytes) -> int:
    """Where the owner's line is, or would be: behind what Artemis wrote."""
    if not is_of_artemis(content):
        return 0
    found = content.find(_MARK)
    return len(content) if found < 0 else found


def owner_in(content: bytes) -> Owner | None:
    """The owner in a lock file; None if it names none."""
    if content.isdigit():  # a version that wrote nothing else
        return Owner(process=int(content))
    line = content[place_of_owner(content) :].partition(b"\n")
    if not line[0].startswith(_MARK) or not line[1]:  # half written
        return None
    text = line[0].removeprefix(_MARK).decode("ascii", "replace")
    fields = dict(part.partition("=")[::2] for part in text.split(" "))
    try:
        known = {name: fields[name] for name in ("host", "boot", "since", "state")}
        return Owner(process=int(fields["process"]), **known)
    except (KeyError, ValueError):
        return None


def read_lock_file(descriptor: int) -> bytes:
    """The content of an open lock file, as far as it matters. Raises OSError."""
    return os.pread(descriptor, _LENGTH_MAX, 0)


def owner_of(directory: Path) -> Owner | None:
    """The owner that the lock file of a directory names, whether it still has it or not; None if there is none."""
    try:
        with (directory / LOCK_NAME).open("rb") as file:
            return owner_in(file.read(_LENGTH_MAX))
    except OSError:
        return None
