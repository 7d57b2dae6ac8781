"""Errors of beans as Java reports them: a status as in HTTP, and the name of an exception's class."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import ArtemisError, BadRequestError, BrokerError, NotAllowedError, NotFoundError

_ILLEGAL: Final = "java.lang.IllegalArgumentException"
_QUEUE_IS_MISSING: Final = "AMQ229017"
_EXISTS: Final = {"createQueue": "AMQ229019", "createAddress": "AMQ229204"}
"""Codes by which tools recognise that nothing is left to do."""


class JavaError(ArtemisError):
    """``status`` as in HTTP; ``type`` is the class that Java would throw."""

    def __init__(self, status: int, type: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.type = type


def illegal(text: str) -> JavaError:
    """Something that makes no sense was asked for."""
    return JavaError(400, _ILLEGAL, text)


def no_instance(name: str) -> JavaError:
    """There is no bean of this name."""
    return JavaError(404, "javax.management.InstanceNotFoundException", name)


def no_attribute(text: str) -> JavaError:
    """A bean lacks an attribute, or the attribute is read-only."""
    return JavaError(404, "javax.management.AttributeNotFoundException", text)


def no_number(text: str) -> JavaError:
    """A text stands where a number belongs."""
    return JavaError(400, "java.lang.NumberFormatException", f'For input string: "{text}"')


def failed(error: BrokerError, operation: str = "") -> JavaError:
    """What an operation of this name, or something else, failed with."""
    text = str(error)
    if isinstance(error, NotAllowedError):
        return JavaError(403, "java.lang.SecurityException", text)
    if isinstance(error, BadRequestError):
        return illegal(text)
    if isinstance(error, NotFoundError):
        if operation == "destroyQueue":
            name = "org.apache.activemq.artemis.api.core.ActiveMQNonExistentQueueException"
            return JavaError(500, name, f"{_QUEUE_IS_MISSING}: {text}")
        return JavaError(404, "javax.management.InstanceNotFoundException", text)
    code = _EXISTS.get(operation) if "already exists" in text else None
    return JavaError(500, "java.lang.IllegalStateException", text if code is None else f"{code}: {text}")
