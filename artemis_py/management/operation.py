"""What an operation is: its name, its arguments, its work, and how it is reached by HTTP and by a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from artemis_py.config.secrets_in_text import MASK
from artemis_py.management.lists.field import AnyKind, Field
from artemis_py.management.managed import Given, Managed, Result, Steps, Work

REQUIRED: Final = object()
TEXTS: Final = "texts"
"""The type of an argument that may be given several times; the others are those of fields."""
LINES: Final = "lines"
"""The type of an argument that is the body of the request as it is: lines of an export, in the parts in which it
arrived. It may be as large as messages.
"""
AMOUNT: Final = "amount"
"""The type of an argument that is a number, or a text with a unit such as 10MiB or 5s."""

VIEW: Final = "view"
EDIT: Final = "edit"
"""The permissions of Artemis' management."""

BROKER: Final = "broker"
DONE: Final = "done"
"""What the audit log says of a change that counts nothing."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument. ``default`` is what counts when it is not given; None: nothing does. ``is_secret``: it is a
    password, which is taken from a body only, and told to nobody.
    """

    name: str
    type: str
    sentence: str
    default: Any = REQUIRED
    is_secret: bool = False
    destroys: str = ""
    """What a flag that is set destroys besides. ``{consumers}`` stands for how many consumers the queue has, or else
    the queues of the address.
    """

    @property
    def is_required(self) -> bool:
        """Must it be given?"""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. ``on`` says on what: ``broker``, or the argument that names it. ``path`` is that of HTTP, and has
    the names of arguments in braces; ``command`` has the words of the command line.

    ``lists`` is the list that it answers with, ``shows`` the kind of one
    thing; None: the ``result`` says what. ``is_download``: it is no JSON, but a file.

    ``mbean`` has its signatures in Artemis' beans (``management/artemis/signature.py``), for Jolokia; ``no_mbean`` says
    why it has none.
    """

    name: str
    on: str = BROKER
    right: str
    method: str
    path: str
    command: str
    sentence: str
    result: str
    work: Work
    arguments: Sequence[Argument] = ()
    lists: AnyKind | None = None
    shows: AnyKind | None = None
    destroys: str = ""
    """What is lost for good, for a question that is asked before; empty: nothing. ``{messages}`` stands for how many
    messages the queue has (that match, if there is a filter), or else the queues of the address, and a name in braces
    for that argument.
    """
    previews: str = ""
    """The path of the look that says what would be ``affected``, for a question before it; empty: there is none."""
    also: Sequence[Field[Any]] = ()
    inside: Mapping[str, AnyKind] = field(default_factory=dict)
    """Lists that an answer without a kind may have in it, by name."""
    """What an answer has besides what it lists, or some of what ``result`` names: with their units, for people."""
    is_download: bool = False
    permitted_as: str = ""
    """The name of the operation on the same thing whose permission it needs; empty: its own."""
    is_watchable: bool = False
    """May clients of ``/api/events`` have it carried out once a second, to be told what changes?"""
    mbean: Sequence[str] = ()
    no_mbean: str = ""

    @property
    def permission(self) -> str:
        """What a security-setting must match behind the prefix, as in Artemis: ``queue.orders.pause``. A name in braces
        is that argument.
        """
        name = self.permitted_as or self.name
        return f"{BROKER}.{name}" if self.on == BROKER else f"{self.on}.{{{self.on}}}.{name}"

    @property
    def id(self) -> str:
        """A name that no other operation has."""
        return self.name if self.on == BROKER else f"{self.on}.{self.name}"

    def begin(self, managed: Managed, given: Given) -> Steps:
        """Its work, none of which is done before the first step. It raises BrokerError in a step."""
        return (yield from self.work(managed, given))

    def shown(self, given: Given) -> dict[str, Any]:
        """The arguments as others may see them, such as in the audit log."""
        found = dict(given)
        for argument in self.arguments:
            if argument.is_secret and found[argument.name] is not None:
                found[argument.name] = MASK
            elif argument.type == LINES:
                found[argument.name] = f"{sum(map(len, found[argument.name]))} bytes"
        return found

    def came_of(self, result: Result) -> str:
        """What came of it, for the audit log: what its answer counts, or the one word that it gives; ``done`` where it
        shows the thing that was changed.
        """
        if self.shows is not None or not isinstance(result, Mapping):
            return DONE
        if "result" in result:
            return str(result["result"])
        return ", ".join(_counted(result)) or DONE

    @property
    def takes_lines(self) -> bool:
        """Is the body of its request one of its arguments?"""
        return any(argument.type == LINES for argument in self.arguments)

    def is_in_path(self, argument: Argument) -> bool:
        """Does the path of HTTP name the argument?"""
        return f"{{{argument.name}}}" in self.path


def _counted(answer: Mapping[str, Any]) -> Iterator[str]:
    """Each number with its name; what is 0 only where it comes first. Of numbers by reason or by queue, the sums."""
    for place, (name, value) in enumerate(answer.items()):
        if isinstance(value, Mapping):
            sums = Counter({name: sum(_numbers(value).values())})
            for row in value.values():
                sums.update(_numbers(row) if isinstance(row, Mapping) else {})
            yield from (f"{each} {count}" for each, count in sums.items() if count)
        elif _numbers({name: value}) and (value or not place):
            yield f"{name} {value}"
        elif name == "stoppedBecause" and value:
            yield f"{name}: {value}"


def _numbers(answer: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in answer.items() if isinstance(value, int) and not isinstance(value, bool)}
