"""The kinds of warnings and notes, by which ``--silence`` leaves them out. Errors cannot be silenced."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from artemis_py.errors import Problem

CODES: Final = {
    "acceptor-closed": "a port that the file names is not opened",
    "circle": "diverts, expiry or dead-letter addresses send messages round",
    "declared-twice": "of two declarations one is left out, or both count together",
    "doubtful-value": "a value counts, but probably not as it was meant",
    "foreign-protocol": "an acceptor names protocols that this broker does not speak",
    "include-place": "an included file also stands where Artemis would look for it",
    "left-out": "a property, parameter or permission means nothing, or its value is wrong, and it is left out",
    "loses-messages": "messages would be dropped or discarded",
    "no-effect": "something is set that this broker does not do",
    "no-port": "no port is opened",
    "not-read": "an element that is not read",
    "old-form": "an old way to write something",
    "placeholder": "a placeholder has no value, or no end",
    "security": "users, passwords and permissions are not checked",
    "tuning": "settings for the inside of Artemis, which is built in another way here",
    "without-limit": "a limit or policy that needs another setting to have an effect",
}


def told(problems: Iterable[Problem], silenced: Collection[str]) -> list[Problem]:
    """Leave out what is silenced."""
    return [problem for problem in problems if problem.code not in silenced or not problem.code]


def kind_of(problem: Problem) -> str:
    """Return severity and code as they stand before the text: ``warning[no-effect]``."""
    return f"{problem.severity}[{problem.code}]" if problem.code else problem.severity
