"""``sendMessage``, which sends a message to a queue or an address.

HTTP and commands have ways of their own (``/messages``, ``artemis-py send``).
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from artemis_py.errors import BadRequestError, BrokerError
from artemis_py.management.artemis.beans import ADDRESS, QUEUE, Bean
from artemis_py.management.artemis.extras import Extra
from artemis_py.management.artemis.signature import signature_of
from artemis_py.management.managed import Managed, Steps
from artemis_py.management.operation import EDIT

_TEXT_TYPE: Final = 3
_OF_THE_FRAME: Final = frozenset({"destination", "persistent", "content-length", "receipt", "transaction"})
"""Headers that say how a message is sent, and that the other arguments decide."""
_MESSAGE_ID: Final = "JMSMessageID"


def _send(managed: Managed, bean: Bean, given: Sequence[Any]) -> Steps:
    """Publish a message. Returns its number as a text. Raises BrokerError if it is nowhere then, or a
    duplicate.
    """
    headers, type, body, durable, user, password, *more = given
    if managed.send is None:
        raise BrokerError("this broker takes no messages from operators")
    content = _content(type, body or "")
    found = [
        ("destination", f"{bean.owner.address.name}::{bean.name}" if bean.kind is QUEUE else bean.name),
        ("persistent", "true" if durable else "false"),
    ]
    if type != _TEXT_TYPE or b"\0" in content:
        found.append(("content-length", str(len(content))))
    found += _headers(headers or {})
    if more and more[0]:
        found.append((_MESSAGE_ID, f"ID:{uuid.uuid4()}"))
    result = yield from managed.send(user or None, password, found, [content])
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
        raise BadRequestError(f"the body of a message that is no text (type {type}) is Base64: {error}") from None


def _headers(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    wrong = next((name for name in headers if name in _OF_THE_FRAME), None)
    if wrong is not None:
        raise BadRequestError(f"{wrong} is no header that a message can be given here; the other arguments decide it")
    return [(name, _text(value)) for name, value in headers.items()]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


_ARGUMENTS: Final = "Map headers, int type, String body, boolean durable, String user, String password"
_SENTENCE: Final = (
    "Publish a message: a text (type 3), or bytes in Base64. With a user it needs the password, and the right to send; "
    "without, the right to this operation is enough. Answers with the number of the message, when it, or a copy, is "
    "on a queue."
)
_SECRETS: Final = frozenset({"password"})

SENT: Final = tuple(
    Extra(kind, signature_of(f"String sendMessage({arguments}) -> messageID"), _SENTENCE, _send, EDIT, _SECRETS)
    for kind in (QUEUE, ADDRESS)
    for arguments in (_ARGUMENTS, f"{_ARGUMENTS}, boolean createMessageId")
)
