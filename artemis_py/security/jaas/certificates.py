"""TextFileCertificateLoginModule and ExternalCertificateLoginModule: the subject of a certificate is the login.

The TLS handshake has verified the certificate; these modules only say whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.security.certificate import Parts, SubjectName, parts_of, subject_of
from artemis_py.security.identity import Credentials
from artemis_py.security.jaas.stack import LoginRefusedError, Subject
from artemis_py.security.users.reloaded import ReloadedFile
from artemis_py.security.users.tables import (
    CUT,
    Entry,
    RolesTable,
    TableError,
    cut_since,
    entries_of,
    roles_table,
    text_of,
)

# ---- Java's regular expressions, as Python's -----------------------------------------------------
#
# Only what both read alike is accepted. Everything else is refused by name: a wrong guess would let somebody in.

_LENGTH_MAX: Final = 4096
_SAFE: Final = re.compile(
    r"""
    [^\\\[\](){}*+?|^$.]               # a character that stands for itself
    | [.^$|)]
    | \((?:\?(?::|=|!|<=|<!))?(?![?*+])  # a group, or a look around
    | [*+?][?+]?                       # how often: greedy, lazy or possessive
    | \{[0-9]{1,4}(?:,[0-9]{0,4})?\}[?+]?
    | \\(?:[dDwWsStnrf1-9]|[^A-Za-z0-9\s])
    | \[\^?(?:(?!--)(?:\\(?:[dDwWsStnrf]|[^A-Za-z0-9\s])|[^\\\[\]&|~]))+\]  # a set without operators
    """,
    re.VERBOSE,
)
_FLAGS: Final = re.compile(r"\(\?(i?)\)")
_LINE_ENDS: Final = re.compile("[\n\r\x85\u2028\u2029]")


class RegexError(ArtemisError):
    """A regular expression is none, or means something else in Java."""


def compile_java(pattern: str) -> re.Pattern[str]:
    """Return a pattern for :func:`matches`. Raises RegexError."""
    if len(pattern) > _LENGTH_MAX:
        raise RegexError(f"a regular expression may have {_LENGTH_MAX} characters")
    flags, place = re.ASCII, 0
    found = _FLAGS.match(pattern)
    if found is not None:
        flags |= re.IGNORECASE if found[1] else re.ASCII
        place = found.end()
    begin = place
    while place < len(pattern):
        found = _SAFE.match(pattern, place)
        if found is None:
            raise RegexError(f"from {pattern[place : place + 8]!r} on, Java and Python read it differently")
        place = found.end()
    try:
        return re.compile(pattern[begin:], flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegexError(f"it is not a regular expression: {error}") from None


def matches(pattern: re.Pattern[str], text: str) -> bool:
    """Does the pattern match the whole text? A text of several lines never: what a point means differs there."""
    return _LINE_ENDS.search(text) is None and pattern.fullmatch(text) is not None


@final
@dataclass(frozen=True, slots=True)
class CertificateTable:
    """Users by the parts of a name and by its text, and by regular expressions in the order of the file."""

    by_parts: Mapping[Parts, str]
    by_text: Mapping[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    flaws: Mapping[str, str]
    """By user what is wrong with a line that lets nobody in."""
    users: frozenset[str]
    """All users that the file names."""

    def user_of(self, name: SubjectName) -> str | None:
        """Return the user with this name: an exact entry wins, then the first expression that matches all of it."""
        user = self.by_text.get(name.text)
        if user is None:
            user = self.by_parts.get(name.parts)
        if user is None:
            user = next((each for pattern, each in self.patterns if matches(pattern, name.text)), None)
        return user


def certificate_table(data: bytes) -> CertificateTable:
    """Read a file of ``user=name`` or ``user=/expression/``. Raises TableError."""
    found = {entry.key: entry for entry in entries_of(text_of(data))}  # of a user given twice the last line counts
    by_parts: dict[Parts, str] = {}
    by_text: dict[str, str] = {}
    patterns: list[tuple[re.Pattern[str], str]] = []
    flaws: dict[str, str] = {}
    for user, entry in found.items():
        value = entry.value
        flaw = _flaw(entry)
        if flaw:
            flaws[user] = f"line {entry.first}: {flaw}"
        elif len(value) > 2 and value.startswith("/") and value.endswith("/"):
            try:
                patterns.append((compile_java(value[1:-1]), user))
            except RegexError as error:
                raise TableError(entry.first, f"the expression of {user}: {error}") from None
        else:
            by_text[value] = user
            parts = parts_of(value)
            if parts is not None:
                by_parts[parts] = user
    return CertificateTable(by_parts, by_text, tuple(patterns), flaws, frozenset(found))


def _flaw(entry: Entry) -> str:
    """What is missing in an entry; empty: nothing."""
    if not entry.is_whole:
        return CUT
    if not entry.value:
        return "the user has no name of a certificate"
    if entry.value.startswith("/") and (len(entry.value) < 3 or not entry.value.endswith("/")):
        return "an expression begins here that is not whole: it is /expression/"
    return ""


@final
class TextFileModule:
    """Users by the subject of their certificate in one file, roles in another."""

    __slots__ = ("_roles", "_users")

    def __init__(self, users_file: Path, roles_file: Path, *, reloads: bool) -> None:
        self._users: Final = ReloadedFile[CertificateTable](users_file, certificate_table, reloads=reloads)
        self._roles: Final = ReloadedFile[RolesTable](
            roles_file, self._roles_in, context=self._users.value, worse=cut_since, reloads=reloads
        )

    def _roles_in(self, data: bytes) -> RolesTable:
        return roles_table(data, self._users.value().users)

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """Both files."""
        return self._users, self._roles

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        users, roles = self._users.in_force, self._roles.in_force
        if users is None or roles is None:
            return
        names: dict[str, object] = {user: text for text, user in users.by_text.items()}
        names.update({user: pattern for pattern, user in users.patterns})
        for user in users.users:
            yield user, (self._users.path, names.get(user), roles.by_user.get(user))

    def read(self) -> None:
        """Read both files. Raises AuthenticatorError if one cannot be read."""
        self._users.value()
        self._roles.value()

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        if credentials.certificate is None:
            raise LoginRefusedError("the client has no certificate")
        user = self._users.value().user_of(_subject(credentials.certificate))
        if user is None:
            raise LoginRefusedError("no user has this certificate")
        return user

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule. Unlike the others, Artemis' module fails here if its login did."""
        if user is None:
            raise LoginRefusedError("it has logged nobody in")
        subject.add(user, *self._roles.value().by_user.get(user, ()))
        return True


@final
class ExternalModule:
    """The subject of the certificate is itself the name of the user. Roles come from a module after it."""

    __slots__ = ()

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        return None if credentials.certificate is None else _subject(credentials.certificate).text

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule. As in Artemis this counts as success even if nobody has logged in."""
        if user is not None:
            subject.add(user)
        return True


def _subject(certificate: bytes) -> SubjectName:
    try:
        return subject_of(certificate)
    except ValueError as error:
        raise AuthenticatorError(f"the subject of a client's certificate cannot be read: {error}") from None
