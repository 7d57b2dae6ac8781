"""The operations of beans: those of the table in the forms that their rows name, and a few more.

``find_operation`` finds the one that a client names, ``BeanOperation.prepare`` makes a call of it with our arguments,
and the call does the work in steps.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from artemis_py.config.properties import SETTING_BEANS, camel
from artemis_py.config.secrets_in_text import MASK
from artemis_py.config.settings import AddressSettings
from artemis_py.config.tables.fields import HONOURED, settings_of
from artemis_py.core.budget import Budget
from artemis_py.core.operations.scan import BEHIND, DELIVERING, PAGED, READY, SCHEDULED, LocatedMessage, MessageFilter
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Step
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from artemis_py.management.artemis.beans import ADDRESS, BROKER, KINDS, QUEUE, Bean, BeanKind
from artemis_py.management.artemis.java import (
    Signature,
    arguments_by_name,
    compact_json,
    failed,
    illegal,
    signature_of,
    text_of,
    typed,
    value_of,
)
from artemis_py.management.listing import PAGE_SIZE_MAX
from artemis_py.management.managed import Managed, Steps, lookup
from artemis_py.management.operation import ALL, ATTRIBUTES, DONE, EDIT, PAGE, VIEW, Operation, arguments_of
from artemis_py.management.operations.arguments import selector_of
from artemis_py.management.operations.browse import MessageView, scan_messages
from artemis_py.management.table import OPERATIONS

# ---- operations that our table does not have: names, messages as maps, sendMessage -----------------------------------

_OF_OPENWIRE: Final = "queuePrefetch"
"""One of two names of a setting."""


class Extra(NamedTuple):
    """An operation. ``work`` gets the arguments by position, and returns the answer or the steps to it. ``secrets`` are
    the parameters that nobody may be told.
    """

    kind: BeanKind
    signature: Signature
    sentence: str
    work: Callable[[Managed, Bean, Sequence[Any]], Any]
    right: str = VIEW
    secrets: frozenset[str] = frozenset()


def _nothing(_managed: Managed, _bean: Bean, _arguments: Sequence[Any]) -> None:
    """Whatever is read after it is true already."""


def _topology(managed: Managed, _bean: Bean, _arguments: Sequence[Any]) -> str:
    return "[]"


def _address_names(managed: Managed, _bean: Bean, arguments: Sequence[Any]) -> str:
    separator = "," if arguments[0] is None else str(arguments[0])
    return separator.join(managed.broker.addresses)


def _bindings(managed: Managed, _bean: Bean, arguments: Sequence[Any]) -> str:
    address = lookup(managed.broker.addresses, "address", str(arguments[0]))
    return ",".join([*(queue.name for queue in address.queues.values()), *(one.name for one in address.diverts)])


def _queue_names(managed: Managed, _bean: Bean, arguments: Sequence[Any]) -> list[str]:
    routing_type = str(arguments[0] or "").upper()
    return [
        queue.name for queue in managed.broker.queues.values() if not routing_type or queue.routing_type == routing_type
    ]


def _count(_managed: Managed, bean: Bean, _arguments: Sequence[Any]) -> int:
    return int(bean.owner.message_count)


def _address_info(managed: Managed, _bean: Bean, arguments: Sequence[Any]) -> str:
    address = lookup(managed.broker.addresses, "address", str(arguments[0]))
    return json.dumps({"name": address.name, "routingTypes": sorted(address.routing_types)})


def _divert_names(managed: Managed, _bean: Bean, _arguments: Sequence[Any]) -> list[str]:
    return list(managed.broker.diverts.in_force)


def _settings(managed: Managed, _bean: Bean, arguments: Sequence[Any]) -> str:
    settings = managed.broker.config.settings_for(str(arguments[0]))
    named = {element: bean for bean, element in reversed(SETTING_BEANS.items()) if bean != _OF_OPENWIRE}
    values = {
        named.get(row.name, camel(row.name)): getattr(settings, row.attribute)
        for row in settings_of(AddressSettings).values()
        if row.treatment == HONOURED
    }
    return json.dumps({name: value for name, value in values.items() if value is not None}, separators=(",", ":"))


_OF_BROKER_AND_QUEUE: Final = (
    Extra(QUEUE, signature_of("void flushExecutor()"), "Do nothing: counts are exact at any time.", _nothing),
    Extra(QUEUE, signature_of("long countMessages()"), "How many messages are on the queue.", _count),
    Extra(BROKER, signature_of("String listNetworkTopology()"), "The cluster: empty.", _topology),
    Extra(BROKER, signature_of("String listAddresses(String separator)"), "All addresses.", _address_names),
    Extra(BROKER, signature_of("String listBindingsForAddress(String address)"), "Its queues and diverts.", _bindings),
    Extra(BROKER, signature_of("String[] getQueueNames(String routingType)"), "The names of queues.", _queue_names),
    Extra(BROKER, signature_of("String[] listDivertNames()"), "The names of all diverts.", _divert_names),
    Extra(
        BROKER,
        signature_of("String getAddressSettingsAsJSON(String addressMatch)"),
        "The settings of an address.",
        _settings,
    ),
    Extra(BROKER, signature_of("String getAddressInfo(String address)"), "Name and routing types.", _address_info),
)


# ---- messages of a queue -------------------------------------------------------------------------


_WAITING: Final = (READY, BEHIND, PAGED)
_SHOWN: Final = ("messageID", "address", "type", "durable", "expiration", "timestamp", "priority")
_ROW_UNITS: Final = 12

Rows = Generator[Step, None, list[dict[str, Any]]]
_ByHolder = Generator[Step, None, dict[int, list[dict[str, Any]]]]


def _by_holder(
    managed: Managed, queue: Queue, states: Collection[str], message_filter: MessageFilter, count_max: int
) -> _ByHolder:
    """The first messages that are in one of the states, by the number of the consumer that has them; 0: none has."""
    view = MessageView.at(queue, managed.now_ms())
    rows: dict[int, list[dict[str, Any]]] = {}
    count = 0

    def visit(located: LocatedMessage, budget: Budget) -> bool:
        nonlocal count
        budget.spend(_ROW_UNITS)
        fields = view.row(located)
        row = {**view.headers(located.message), **{name: fields[name] for name in _SHOWN}}
        rows.setdefault(0 if located.holder is None else located.holder.id, []).append(row)
        count += 1
        return count >= count_max

    yield from scan_messages(managed, queue, states, message_filter, visit)
    return rows


def _rows(
    managed: Managed, queue: Queue, states: Collection[str], message_filter: MessageFilter, count_max: int
) -> Rows:
    """The same, of messages that no consumer has."""
    by_holder = yield from _by_holder(managed, queue, states, message_filter, count_max)
    return by_holder.get(0, [])


def _page_of(managed: Managed, bean: Bean, arguments: Sequence[Any]) -> Rows:
    """Those that wait, at most as many as a page of a browse has, as in Artemis."""
    queue: Queue = bean.owner
    count_max = min(queue.address.settings.management_browse_page_size, PAGE_SIZE_MAX)
    return (yield from _rows(managed, queue, _WAITING, MessageFilter(selector_of(str(arguments[0] or ""))), count_max))


def _scheduled(managed: Managed, bean: Bean, _arguments: Sequence[Any]) -> Rows:
    return (yield from _rows(managed, bean.owner, (SCHEDULED,), MessageFilter(), PAGE_SIZE_MAX))


def _delivering(
    managed: Managed, bean: Bean, _arguments: Sequence[Any]
) -> Generator[Step, None, dict[str, list[dict[str, Any]]]]:
    by_holder = yield from _by_holder(managed, bean.owner, (DELIVERING,), MessageFilter(), PAGE_SIZE_MAX)
    return {f"consumer {number}": rows for number, rows in by_holder.items()}


def _page_as_json(managed: Managed, bean: Bean, arguments: Sequence[Any]) -> Generator[Step, None, str]:
    return compact_json((yield from _page_of(managed, bean, arguments)))


def _scheduled_as_json(managed: Managed, bean: Bean, arguments: Sequence[Any]) -> Generator[Step, None, str]:
    return compact_json((yield from _scheduled(managed, bean, arguments)))


def _delivering_as_json(managed: Managed, bean: Bean, arguments: Sequence[Any]) -> Generator[Step, None, str]:
    by_consumer = yield from _delivering(managed, bean, arguments)
    return compact_json([{"consumerName": name, "elements": rows} for name, rows in by_consumer.items()])


def _first_as_json(managed: Managed, bean: Bean, _arguments: Sequence[Any]) -> Generator[Step, None, str | None]:
    rows = yield from _rows(managed, bean.owner, _WAITING, MessageFilter(), 1)
    return compact_json(rows[0]) if rows else None


_PAGE: Final = "The first messages that match and wait for a consumer: at most management-browse-page-size."
_LATER: Final = f"The messages that wait for their time, at most {PAGE_SIZE_MAX:,}."
_HELD: Final = f"By consumer, the messages that it has and did not acknowledge, at most {PAGE_SIZE_MAX:,}."

_LISTED: Final = (
    Extra(QUEUE, signature_of("Map[] listMessages(String filter)"), _PAGE, _page_of),
    Extra(QUEUE, signature_of("String listMessagesAsJSON(String filter)"), _PAGE, _page_as_json),
    Extra(QUEUE, signature_of("Map[] listScheduledMessages()"), _LATER, _scheduled),
    Extra(QUEUE, signature_of("String listScheduledMessagesAsJSON()"), _LATER, _scheduled_as_json),
    Extra(QUEUE, signature_of("Map listDeliveringMessages()"), _HELD, _delivering),
    Extra(QUEUE, signature_of("String listDeliveringMessagesAsJSON()"), _HELD, _delivering_as_json),
    Extra(QUEUE, signature_of("String peekFirstMessageAsJSON()"), "The first that waits; null: none.", _first_as_json),
)


# ---- sendMessage ---------------------------------------------------------------------------------


_TEXT_TYPE: Final = 3
_OF_THE_FRAME: Final = frozenset({"destination", "persistent", "content-length", "receipt", "transaction"})
"""Headers that say how a message is sent, and that the other arguments decide."""
_MESSAGE_ID: Final = "JMSMessageID"


def _send(managed: Managed, bean: Bean, arguments: Sequence[Any]) -> Steps:
    """Publish a message. Returns its number as a text. Raises BrokerError if it is nowhere then, or a
    duplicate.
    """
    headers, type, body, durable, user, password, *more = arguments
    if managed.send is None:
        raise BrokerError("this broker takes no messages from operators")
    content = _content(type, body or "")
    frame_headers = [
        ("destination", f"{bean.owner.address.name}::{bean.name}" if bean.kind is QUEUE else bean.name),
        ("persistent", "true" if durable else "false"),
    ]
    if type != _TEXT_TYPE or b"\0" in content:
        frame_headers.append(("content-length", str(len(content))))
    frame_headers += _headers(headers or {})
    if more and more[0]:
        frame_headers.append((_MESSAGE_ID, f"ID:{uuid.uuid4()}"))
    result = yield from managed.send(user or None, password, frame_headers, [content])
    assert isinstance(result, Mapping)
    if result["duplicate"]:
        raise BrokerError(
            f"address {result['address']} has had a message with this duplicate id, and has dropped this one; a new "
            "message needs another _AMQ_DUPL_ID"
        )
    return {"messageID": str(result["messageID"])}


def _content(type: int, body: str) -> bytes:
    """A text as it is, anything else in Base64, as in Artemis. Raises BadRequestError."""
    if type == _TEXT_TYPE:
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"the body of a message that is not a text (type {type}) is Base64: {error}") from None


def _headers(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    wrong = next((name for name in headers if name in _OF_THE_FRAME), None)
    if wrong is not None:
        raise BadRequestError(
            f"{wrong} is not a header that a message can be given here; the other arguments decide it"
        )
    return [(name, text_of(value)) for name, value in headers.items()]


_ARGUMENTS: Final = "Map headers, int type, String body, boolean durable, String user, String password"
_SENTENCE: Final = (
    "Publish a message: a text (type 3), or bytes in Base64. With a user it needs the password, and the right to send; "
    "without, the right to this operation is enough. Answers with the number of the message, when it, or a copy, is "
    "on a queue."
)
_SECRETS: Final = frozenset({"password"})

_SENT: Final = tuple(
    Extra(kind, signature_of(f"String sendMessage({arguments}) -> messageID"), _SENTENCE, _send, EDIT, _SECRETS)
    for kind in (QUEUE, ADDRESS)
    for arguments in (_ARGUMENTS, f"{_ARGUMENTS}, boolean createMessageId")
)

EXTRAS: Final = (*_OF_BROKER_AND_QUEUE, *_LISTED, *_SENT)
"""All of them."""


# ---- all operations --------------------------------------------------------------------------------------------------

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
