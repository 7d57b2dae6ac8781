"""One signature of an operation of Artemis' beans, written in one line beside our own operation.

``boolean moveMessage(long messageID=message, String otherQueueName=to) -> moved`` reads: the operation ``moveMessage``
takes a number, which is our argument ``message``, and a text, our argument ``to``. Its answer is what our result has
under ``moved``. A parameter without ``=`` is the argument of the same name (``maxConsumers`` is ``max-consumers``).
``=_``: it is taken and means nothing. ``={}``: it is a JSON object that has our arguments by name, and with
``={name=queue}`` its ``name`` is our ``queue``. Without ``->`` the
type says what the answer is: nothing for ``void``, whether it was done for ``boolean``, the result as JSON in a text
for ``String``, and rows for ``CompositeData[]`` and ``Map[]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

NOTHING: Final = "_"

_JAVA: Final = {
    "String": "java.lang.String",
    "Long": "java.lang.Long",
    "Integer": "java.lang.Integer",
    "Boolean": "java.lang.Boolean",
    "Map": "java.util.Map",
    "Object": "java.lang.Object",
    "CompositeData": "javax.management.openmbean.CompositeData",
}
_PLAIN: Final = frozenset({"void", "boolean", "int", "long", "double", "float"})
_SIGNATURE: Final = re.compile(r"([\w\[\]]+) (\w+)\((.*?)\)(?: -> ([\w-]+))?")
_PARAMETER: Final = re.compile(r"([\w\[\]]+) (\w+)(?:=(_|{[\w=-]*}|[\w-]+))?")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])[A-Z]+")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its type as Java names it, its name, and our argument, ``_`` or ``{…}``."""

    type: str
    name: str
    argument: str

    @property
    def is_by_name(self) -> bool:
        """Has it our arguments by name?"""
        return self.argument.startswith("{")

    @property
    def renamed(self) -> tuple[str, str]:
        """A name in it, and our argument of another name; both are empty without one."""
        name, _, argument = self.argument[1:-1].partition("=")
        return name, argument


@dataclass(frozen=True)
class Signature:
    """``returns`` is a type as Java names it; ``key`` says which value of our result is the answer, None: the type."""

    text: str
    returns: str
    name: str
    parameters: Sequence[Parameter]
    key: str | None

    @cached_property
    def types(self) -> str:
        """The types of the parameters, with commas between."""
        return ",".join(one.type for one in self.parameters)

    @property
    def shown(self) -> str:
        """Name and parameters, for people: ``pause(boolean persist)``."""
        parameters = ", ".join(f"{one.type.rpartition('.')[2]} {one.name}" for one in self.parameters)
        return f"{self.name}({parameters})"

    @property
    def full_name(self) -> str:
        """Name and types, by which a client chooses it: ``pause(boolean)``."""
        return f"{self.name}({self.types})"


def signature_of(text: str) -> Signature:
    """Read a signature. Raises ValueError: the line in the table is wrong."""
    found = _SIGNATURE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no signature")
    parameters = [_parameter(text, one.strip()) for one in found[3].split(",")] if found[3] else []
    return Signature(text, java_type(found[1]), found[2], parameters, found[4])


def java_type(name: str) -> str:
    """A type as Java names it. Raises ValueError."""
    one = name.removesuffix("[]")
    if one not in _JAVA and one not in _PLAIN:
        raise ValueError(f"{name!r} is no type that is known here")
    return f"[L{_JAVA[one]};" if name.endswith("[]") else _JAVA.get(one, one)


def _parameter(text: str, part: str) -> Parameter:
    found = _PARAMETER.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} in {text!r} is no parameter")
    return Parameter(java_type(found[1]), found[2], found[3] or _HUMP.sub(lambda hump: f"-{hump[0]}", found[2]).lower())
