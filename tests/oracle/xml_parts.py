"""Pieces of a broker.xml, as scenarios declare them."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr


def queue(name: str, filter: str | None = None, **attributes: object) -> str:
    """A queue; ``ring_size=3`` gives ``ring-size="3"``."""
    written = "".join(f" {key.replace('_', '-')}={quoteattr(_text(value))}" for key, value in attributes.items())
    inside = "" if filter is None else f"<filter string={quoteattr(filter)}/>"
    return f"<queue name={quoteattr(name)}{written}>{inside}</queue>"


def address(name: str, *, anycast: tuple[str, ...] | None = None, multicast: tuple[str, ...] | None = None) -> str:
    """An address with its queues; None leaves a routing type out."""
    parts = [
        f"<{kind}>{''.join(queues)}</{kind}>"
        for kind, queues in (("anycast", anycast), ("multicast", multicast))
        if queues is not None
    ]
    return f"<address name={quoteattr(name)}>{''.join(parts)}</address>"


def anycast(name: str, **attributes: object) -> str:
    """An anycast address with one queue of the same name."""
    return address(name, anycast=(queue(name, **attributes),))  # type: ignore[arg-type]


def setting(match: str, **elements: object) -> str:
    """An address-setting; ``max_size_messages=2`` gives the element ``max-size-messages``."""
    return f"<address-setting match={quoteattr(match)}>{_elements(elements)}</address-setting>"


def divert(name: str, source: str, to: str, *, exclusive: bool = False, filter: str | None = None, **more: str) -> str:
    """A divert."""
    inside = f"<address>{escape(source)}</address><forwarding-address>{escape(to)}</forwarding-address>"
    if filter is not None:
        inside += f"<filter string={quoteattr(filter)}/>"
    inside += f"<exclusive>{_text(exclusive)}</exclusive>"
    return f"<divert name={quoteattr(name)}>{inside}{_elements(more)}</divert>"


def _elements(values: Mapping[str, object]) -> str:
    return "".join(
        f"<{key.replace('_', '-')}>{escape(_text(value))}</{key.replace('_', '-')}>" for key, value in values.items()
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
