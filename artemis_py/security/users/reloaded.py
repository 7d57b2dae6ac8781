"""A file whose content is parsed again when it has changed."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from artemis_py.config.xml.source import FILE_LENGTH_MAX, read_regular_file
from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.log_codes import REALM
from artemis_py.terminal_output import warn


class Table(Protocol):
    """The content of a file, and what is wrong with single entries: by its key why an entry counts for nothing."""

    @property
    def flaws(self) -> Mapping[str, str]:
        """The reasons; they have no secret, but a key may be one."""


@runtime_checkable
class _Listing(Protocol):
    def logins(self) -> Iterable[tuple[str, object]]: ...


Parsed = TypeVar("Parsed", bound=Table)
_LINE: Final = re.compile(r"(?::\s*line |:)(\d+):")
"""Where a reason names the line of the file."""
_SETTLED_NS: Final = 1_000_000_000
"""A file changed less than this before it was read may have been read half-written, and its next change may get the
same date: it is read again.
"""


_QUIET: Final = ContextVar("_QUIET", default=False)


@contextmanager
def quietly() -> Iterator[None]:
    """Files that are made meanwhile tell no flaw before they ``speak`` or ``follow`` another: what they read may never
    count, as that of a reload that is refused, or where what was in force before stays.
    """
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


class _Mark(NamedTuple):
    """What differs between two versions of a file."""

    modified_ns: int
    changed_ns: int
    length: int
    inode: int


class ReloadedFile(Generic[Parsed]):
    """The content of a file as ``parse`` makes it, which raises ArtemisError for a content that it refuses.

    ``value`` looks at the file each time and reads it when it has changed, or when ``context``, what else ``parse``
    makes use of, is another object than before. The last good content stays in force when
    the file cannot be read, is empty, or is worse: it has a flaw that what is in force does not have. ``tell`` (or the
    log) gets one line for each version of this kind, and ``complaint`` says why until it is mended. With ``reloads``
    false the file is read once. Any thread may ask, but not the event loop's: the file may be on a slow disk.
    """

    def __init__(
        self,
        path: Path,
        parse: Callable[[bytes], Parsed],
        *,
        context: Callable[[], object] | None = None,
        worse: Callable[[Parsed, Parsed], str] | None = None,
        reloads: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """``worse`` says why a content (the second) may not take the place of one in force; empty: it may."""
        self.path: Final = path
        self._parse: Final = parse
        self._context: Final = context
        self._worse: Final = worse
        self._reloads: Final = reloads
        self._tell: Final = self._warn if tell is None else tell
        self._lock: Final = threading.Lock()
        self._is_quiet = _QUIET.get()
        self._parsed: Parsed | None = None
        self._mark: _Mark | None = None
        self._parsed_with: object = None
        self._is_settled = False
        self._complaint = ""

    @property
    def complaint(self) -> str:
        """Why the file as it is now is not in force, or lets fewer in than it names; empty: it is in force."""
        return self._complaint

    @property
    def in_force(self) -> Parsed | None:
        """The content in force, without a look at the file; None: it could never be read."""
        return self._parsed

    def value(self) -> Parsed:
        """Return the content. Raises AuthenticatorError if the file could never be read."""
        with self._lock:
            if self._parsed is None or self._reloads:
                self._look()
            if self._parsed is None:
                raise AuthenticatorError(self._complaint)
            return self._parsed

    def check(self) -> str:
        """Read the file if it has changed, as ``value``; returns the complaint."""
        with self._lock:
            if self._reloads:
                self._look()
            return self._complaint

    def follow(self, before: ReloadedFile[Any]) -> None:
        """This takes the place of another one for the same file, at a reload of the configuration: the file must not be
        worse than what was in force there.
        """
        with before._lock:
            parsed = before._parsed
        if parsed is None or self.path != before.path or self._parse.__qualname__ != before._parse.__qualname__:
            return
        with self._lock:
            self._is_quiet = False
            self._parsed, self._mark, self._complaint = parsed, None, before._complaint
            self._look()

    def speak(self) -> None:
        """What was read counts from now on: tell what is wrong with it, if nobody has been told."""
        with self._lock:
            if self._is_quiet:
                self._is_quiet = False
                if self._complaint and self._parsed is not None:
                    self._tell_flaw()

    def _look(self) -> None:
        try:
            if "\0" in str(self.path):
                raise AuthenticatorError("no file has a NUL in its name")
            found = os.stat(self.path)
            mark = _Mark(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            context = None if self._context is None else self._context()
            if mark == self._mark and context is self._parsed_with and self._is_settled:
                return
            self._is_settled = not 0 <= time.time_ns() - mark.changed_ns < _SETTLED_NS
            self._mark, self._parsed_with = mark, context
            self._take(_content(self.path))
        except OSError as error:
            self._mark = None
            self._complain(f"{self.path} cannot be read: {error.strerror or error}")
        except ArtemisError as error:
            text = str(error)
            self._complain(text if str(self.path) in text else f"{self.path}: {text}")

    def _take(self, data: bytes) -> None:
        """Let a content count, unless it is worse than what does. Raises ArtemisError."""
        before = self._parsed
        if not data and before is not None:
            raise AuthenticatorError("it is empty; a file for nobody has a comment")
        parsed = self._parse(data)
        new = [why for key, why in parsed.flaws.items() if before is None or key not in before.flaws]
        if before is not None:
            worse = new[0] if new else self._worse(before, parsed) if self._worse is not None else ""
            if worse:
                raise AuthenticatorError(worse)
        self._parsed = parsed
        flaws = new or list(parsed.flaws.values())
        self._complaint = f"{self.path}: {flaws[0]}" if flaws else ""
        if new:
            self._tell_flaw()

    def _tell_flaw(self) -> None:
        if not self._is_quiet:
            self._tell(f"warning: {self._complaint}; nobody gets anything by this line")

    def _warn(self, text: str) -> None:
        """Write a line of the log, which has file and line as fields. Its text need not name them again."""
        found = _LINE.search(text)
        place = rf"{re.escape(str(self.path))}(?::\s*(?:line )?\d+:|:?) "
        warn(re.sub(place, "", text, count=1), REALM, file=str(self.path), line="" if found is None else found[1])

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            if self._parsed is not None:
                self._tell(f"warning: {complaint}; what was read before stays in force")


def files_of(source: object) -> Sequence[ReloadedFile[Any]]:
    """The files of an authenticator or a module; none for one that has no attribute ``files``."""
    found: Sequence[ReloadedFile[Any]] = getattr(source, "files", ())
    return found


class Fetched(Protocol):
    """What an authenticator fetches from an issuer, such as keys."""

    issuer: str
    complaint: str
    """Why it could not be fetched the last time; empty: it could."""

    def follow(self, before: Any) -> None:
        """This takes the place of another one of the same issuer, at a reload of the configuration."""


def fetched_keys_of(source: object) -> Sequence[Fetched]:
    """The keys that an authenticator fetches; none for one that has no attribute ``fetched_keys``."""
    found: Sequence[Fetched] = getattr(source, "fetched_keys", ())
    return found


def logins_of(source: object) -> Iterable[tuple[str, object]]:
    """What an authenticator or a module knows of its users: names, each with one thing that lets the user in or gives
    roles. Two that are equal mean the same login. Nothing for one that has no method ``logins``. It reads no file.
    """
    return source.logins() if isinstance(source, _Listing) else ()


def _content(path: Path) -> bytes:
    data = read_regular_file(str(path))
    if data is None:
        raise AuthenticatorError("it is not a regular file")
    if len(data) > FILE_LENGTH_MAX:
        raise AuthenticatorError(f"it is larger than {FILE_LENGTH_MAX // 1024**2} MiB")
    return data
