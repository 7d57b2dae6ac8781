"""The names of the beans of a broker in tests, and what Jolokia answers about them."""

from __future__ import annotations

from typing import Any, Final

from artemis_py.management.artemis.beans import quote
from tests.e2e.management.told import Told

DOMAIN: Final = "org.apache.activemq.artemis"
BROKER: Final = f'{DOMAIN}:broker="e2e"'
BASE: Final = "/console/jolokia"


def address_bean(address: str) -> str:
    """The name of the bean of an address."""
    return f"{BROKER},component=addresses,address={quote(address)}"


def queue_bean(queue: str, address: str | None = None) -> str:
    """The name of the bean of an anycast queue; without ``address`` that has the queue's name."""
    place = address_bean(address or queue)
    return f'{place},subcomponent=queues,routing-type="anycast",queue={quote(queue)}'


def execute(told: Told, bean: str, operation: str, *arguments: object) -> Any:
    """The value that an operation returns."""
    answer = told.asked(
        "POST", BASE, {"type": "exec", "mbean": bean, "operation": operation, "arguments": list(arguments)}
    )
    assert answer["status"] == 200, answer
    return answer["value"]


def read(told: Told, bean: str, attribute: str) -> Any:
    """The value of an attribute."""
    answer = told.asked("POST", BASE, {"type": "read", "mbean": bean, "attribute": attribute})
    assert answer["status"] == 200, answer
    return answer["value"]
