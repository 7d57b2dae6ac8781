"""The operations of beans: those of the table in the forms that their rows name, and a few more.

``find_operation`` finds the one that a client names, ``BeanOperation.prepare`` makes a call of it with our arguments,
and the call does the work in steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from artemis_py.config.secrets_in_text import MASK
from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.management.artemis.beans import BROKER, KINDS, Bean, BeanKind
from artemis_py.management.artemis.extra_operations import EXTRAS, Extra
from artemis_py.management.artemis.java_errors import failed, illegal
from artemis_py.management.artemis.results import value_of
from artemis_py.management.artemis.signatures import Signature, arguments_by_name, signature_of, typed
from artemis_py.management.managed import Managed
from artemis_py.management.operation import ALL, ATTRIBUTES, DONE, EDIT, PAGE, Operation, arguments_of
from artemis_py.management.table import OPERATIONS

_CHOICE: Final = re.compile(r"(\w+)(?:\((.*)\))?")
_SHOWN_MAX: Final = 200
_MEANINGLESS: Final = frozenset({
    "id", "user", "configuration-managed", "internal", "transient", "auto-created", "fqqn", "temporary",
    "consumer-priority",
})  # fmt: skip
"""What Artemis' JSON of a queue has, and no argument is called."""


class Outcome(NamedTuple):
    """What a call returns, and its outcome for the audit log."""

    value: Any
    outcome: str = DONE


CallSteps = Generator[Step, None, Outcome]


@dataclass(frozen=True, slots=True)
class Call:
    """An operation with its arguments: ``permission`` is where the ``right`` is needed, ``id`` and ``arguments`` are
    for the audit log.
    """

    id: str
    right: str
    permission: str
    arguments: Mapping[str, Any]
    begin: Callable[[], CallSteps]


@dataclass(frozen=True, slots=True, eq=False)
class BeanOperation:
    """One operation of one kind of beans, with one signature."""

    kind: BeanKind
    signature: Signature
    sentence: str
    source: Operation | Extra

    @property
    def right(self) -> str:
        """``view`` or ``edit``."""
        return self.source.right

    def prepare(self, managed: Managed, bean: Bean, values: Sequence[Any]) -> Call:
        """The call with these arguments, by position. Raises JavaError, BrokerError."""
        signature, source = self.signature, self.source
        if isinstance(source, Extra):
            arguments = typed(signature, values)
            begin = _of_extra(source, managed, bean, arguments)
            logged = {
                parameter.name: MASK if value is not None and parameter.name in source.secrets else value
                for parameter, value in zip(signature.parameters, arguments, strict=True)
            }
            return Call(signature.name, source.right, f"{bean.address}.{signature.name}", logged, begin)
        sent = _meant(source, arguments_by_name(signature, values))
        if source.on != BROKER.component and bean.kind.component == source.on:
            sent[source.on] = [bean.name]
        by_name = arguments_of(source, sent)
        permission = source.permission
        for name, value in by_name.items():
            permission = permission.replace(f"{{{name}}}", str(value))
        begin = _of_row(source, signature, managed, by_name)
        return Call(source.id, source.right, permission, source.masked(by_name), begin)

    @property
    def secrets(self) -> set[int]:
        """The places of parameters that no answer or log may repeat."""
        parameters = self.signature.parameters
        if isinstance(self.source, Extra):
            return {place for place, one in enumerate(parameters) if one.name in self.source.secrets}
        names = {argument.name for argument in self.source.arguments if argument.is_secret}
        return {place for place, one in enumerate(parameters) if one.argument in names}


def _meant(row: Operation, sent: dict[str, Sequence[object]]) -> dict[str, Sequence[object]]:
    """Without what Artemis writes into the JSON of a queue and means nothing here, and without empty texts where no
    text is the same. A list without pages has all rows, but a browse has its first page, as in Artemis.
    """
    known = {argument.name: argument for argument in row.arguments}
    meant: dict[str, Sequence[object]] = {"page": [ALL], "size": [ALL]} if PAGE in row.arguments else {}
    for name, values in sent.items():
        argument = known.get(name)
        if argument is None and name in _MEANINGLESS:
            continue
        is_empty = list(values) == [""] and argument is not None and argument.default is None
        meant[name] = () if is_empty else values
    return meant


def _of_extra(extra: Extra, managed: Managed, bean: Bean, arguments: list[Any]) -> Callable[[], CallSteps]:
    def begin() -> CallSteps:
        yield from ()
        try:
            answer = extra.work(managed, bean, arguments)
            if isinstance(answer, Generator):
                answer = yield from answer
            return Outcome(answer if extra.signature.key is None else value_of(extra.signature, answer))
        except BrokerError as error:
            raise failed(error, extra.signature.name) from None

    return begin


def _of_row(
    row: Operation, signature: Signature, managed: Managed, arguments: Mapping[str, Any]
) -> Callable[[], CallSteps]:
    def begin() -> CallSteps:
        try:
            result = yield from row.begin(managed, arguments)
        except NotFoundError as error:
            if signature.returns == "boolean":
                return Outcome(value=False, outcome=str(error))
            raise failed(error, signature.name) from None
        except BrokerError as error:
            raise failed(error, signature.name) from None
        return Outcome(value_of(signature, result), row.outcome_of(result))

    return begin


def kind_of(row: Operation) -> BeanKind:
    """On which beans an operation of the table is: those of what it is about, else the broker's."""
    return next((kind for kind in KINDS if kind.component == row.on), BROKER)


def _all(rows: Iterable[Operation]) -> dict[BeanKind, dict[str, list[BeanOperation]]]:
    """By kind and name; a name may have several signatures."""
    operations: dict[BeanKind, dict[str, list[BeanOperation]]] = {kind: {} for kind in KINDS}

    def add(one: BeanOperation) -> None:
        operations[one.kind].setdefault(one.signature.name, []).append(one)

    for row in rows:
        for text in row.mbean:
            if text != ATTRIBUTES:
                add(BeanOperation(kind_of(row), signature_of(text), row.sentence, row))
    for extra in EXTRAS:
        add(BeanOperation(extra.kind, extra.signature, extra.sentence, extra))
    return operations


BEAN_OPERATIONS: Final = _all(OPERATIONS)


def find_operation(kind: BeanKind, text: str, bean_name: str, count: int) -> BeanOperation:
    """The operation that ``name(type,type)`` or a bare name means; ``count`` is the number of arguments. Raises
    JavaError.
    """
    asked = _CHOICE.fullmatch(text.replace(" ", ""))
    overloads = () if asked is None else BEAN_OPERATIONS[kind].get(asked[1], ())
    if asked is None or not overloads:
        raise illegal(f"No operation {text[:_SHOWN_MAX]} found on MBean {bean_name}")
    known = ",".join(f"({one.signature.types})" for one in overloads)
    if asked[2] is not None:
        overloads = [one for one in overloads if one.signature.types == asked[2]]
        if not overloads:
            raise illegal(f"No operation {text[:_SHOWN_MAX]} on MBean {bean_name} exists. Known signatures: {known}")
    elif len(overloads) > 1:
        raise illegal(
            f"Operation {text} on MBean {bean_name} is overloaded. Signatures found: {known}. Use a signature when "
            "specifying the operation."
        )
    operation = overloads[0]
    if len(operation.signature.parameters) != count:
        raise illegal(
            f"Invalid number of operation arguments. Operation {text} on {bean_name} requires "
            f"{len(operation.signature.parameters)} parameters, not {count} as given"
        )
    return operation


def without_secrets(kind: BeanKind, text: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """The arguments for an operation of this name as an answer may repeat them."""
    overloads = BEAN_OPERATIONS[kind].get(text.partition("(")[0].strip(), ())
    if not any(one.secrets for one in overloads):
        return arguments
    fitting = [one for one in overloads if len(one.signature.parameters) == len(arguments)]
    hidden = set[int]().union(*(one.secrets for one in fitting)) if fitting else set(range(len(arguments)))
    return [MASK if place in hidden and value is not None else value for place, value in enumerate(arguments)]


def changes(kind: BeanKind, text: str) -> bool:
    """May an operation of this name change something?"""
    name = text.partition("(")[0].strip()
    return any(one.right == EDIT for one in BEAN_OPERATIONS[kind].get(name, ()))
