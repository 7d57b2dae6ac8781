"""The kinds of warnings and notes, which ``--silence`` hides. Errors cannot be silenced."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from artemis_py.errors import Problem

CODES: Final = {
    "acceptor-closed": "a configured port is not opened",
    "certificate": "clients will refuse a certificate of this broker",
    "circle": "diverts, expiry or dead-letter addresses form a loop",
    "declared-twice": "something is declared twice; one declaration is ignored, or both are merged",
    "doubtful-value": "a value is accepted, but probably means something else than intended",
    "foreign-protocol": "an acceptor names unsupported protocols",
    "include-place": "an included file also exists where Artemis would look for it",
    "instance": "something in an Artemis instance is done differently here",
    "kept-messages": "the journal has messages, and a start leaves a queue as it is for them, or reads none",
    "left-out": "a property, parameter or permission is unknown or has a wrong value, and is ignored",
    "loses-messages": "messages would be dropped, deleted or expire",
    "no-effect": "a setting asks for something that this broker does not support",
    "no-port": "no port is opened",
    "not-read": "an element is ignored",
    "old-form": "something is written in a deprecated form",
    "placeholder": "a placeholder has no value or no closing brace",
    "tuning": "settings for the internals of Artemis, without effect here",
    "users": "something in the files of users and roles keeps somebody out, or lets them in too easily",
    "without-limit": "a limit or policy has no effect without another setting",
}


def told(problems: Iterable[Problem], silenced: Collection[str]) -> list[Problem]:
    """Return the problems that are not silenced."""
    return [problem for problem in problems if problem.code not in silenced or not problem.code]


def kind_of(problem: Problem) -> str:
    """Return severity and code as shown before the text: ``warning[no-effect]``."""
    return f"{problem.severity}[{problem.code}]" if problem.code else problem.severity
