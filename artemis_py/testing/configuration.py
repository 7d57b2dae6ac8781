"""The configuration of a broker in a test: one made for tests, or somebody's own file, on free ports of loopback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from artemis_py.config.reader import load, loads
from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.config.tables.acceptor import SERVED_PROTOCOLS
from artemis_py.errors import ArtemisError

LOOPBACK: Final = "127.0.0.1"
_FILE: Final = "the test's configuration"
_ALWAYS: Final[Mapping[str, Mapping[str, Any]]] = {"DLQ": {}, "ExpiryQueue": {}}
_ELEMENTS: Final = ("filter", "durable")
"""What stands in an element below the queue, and not in an attribute."""

_XML: Final = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>test</name>
    <persistence-enabled>false</persistence-enabled>
    <security-enabled>false</security-enabled>
    <journal-file-size>1M</journal-file-size>
    <acceptors>
      <acceptor name="stomp">
        tcp://127.0.0.1:0?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/
      </acceptor>
    </acceptors>
    <address-settings>
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <expiry-address>ExpiryQueue</expiry-address>
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
    </address-settings>
    <addresses>
      {addresses}
    </addresses>
  </core>
</configuration>
"""
"""As ``artemis create`` makes it, for clients that say nothing about types. What a test has counted stays: no queue is
deleted because it is empty.
"""


def configuration_of(
    config: str | os.PathLike[str] | None,
    queues: Mapping[str, Mapping[str, Any]],
    *,
    folder: Path,
    persistence: bool,
    port: int,
    http: bool = False,
) -> BrokerConfig:
    """The configuration of one broker. ``config`` is None for the one made for tests, a file, or the text of one.

    The files of the broker go below ``folder``, and its ports are on the loopback address: the first for STOMP is
    ``port`` (0: a free one), the others are free ones; with ``http`` one of them is for HTTP. Raises ConfigError,
    or ArtemisError for a queue that the file declares, too.
    """
    if config is None:
        base = _parsed(_XML.format(addresses=_addresses_xml({**_ALWAYS, **queues})))
    else:
        base = _base(config)
        if queues:
            base = _with_addresses(base, _parsed(_XML.format(addresses=_addresses_xml(queues))))
    retention = base.journal_retention
    if retention is not None:
        retention = replace(retention, directory=str(folder / "retention")) if persistence else None
    return replace(
        base,
        persistence_enabled=persistence,
        journal_directory=str(folder / "journal"),
        bindings_directory=str(folder / "bindings"),
        paging_directory=str(folder / "paging"),
        large_messages_directory=str(folder / "largemessages"),
        create_journal_dir=True,
        journal_retention=retention,
        acceptors=_on_loopback(base.acceptors, port, http=http),
    )


def _base(config: str | os.PathLike[str]) -> BrokerConfig:
    if isinstance(config, str) and config.lstrip().startswith("<"):
        return loads(config, _FILE)
    return load(config)


@lru_cache(maxsize=64)
def _parsed(text: str) -> BrokerConfig:
    """Read a text that depends on nothing else. Brokers of one process share what is read."""
    return loads(text, _FILE)


def _with_addresses(base: BrokerConfig, added: BrokerConfig) -> BrokerConfig:
    """``base`` with the addresses of ``added`` that it lacks."""
    known = {address.name for address in base.addresses}
    declared = {queue.name for address in base.addresses for queue in address.queues}
    for address in added.addresses:
        for queue in address.queues:
            if queue.name in declared or address.name in known:
                raise ArtemisError(
                    f"the queue {queue.name} on the address {address.name} is in {base.file} already: change it there, "
                    "or leave it out of the queues of the test"
                )
    return replace(base, addresses=(*base.addresses, *added.addresses))


def _addresses_xml(queues: Mapping[str, Mapping[str, Any]]) -> str:
    """The queues of a test, by name, each with its attributes as in broker.xml, and ``address`` and ``multicast``."""
    addresses: dict[str, list[str]] = {}
    for name, given in queues.items():
        attributes = {key.replace("_", "-"): value for key, value in given.items()}
        address = str(attributes.pop("address", name))
        kind = "multicast" if attributes.pop("multicast", False) else "anycast"
        addresses.setdefault(address, []).append(f"<{kind}>{_queue_xml(name, attributes)}</{kind}>")
    return "\n".join(
        f"<address name={quoteattr(name)}>{''.join(_merged(xml))}</address>" for name, xml in addresses.items()
    )


def _merged(xml: list[str]) -> list[str]:
    """An address has one element of each kind."""
    merged: list[str] = []
    for kind in ("anycast", "multicast"):
        inside = [
            part.removeprefix(f"<{kind}>").removesuffix(f"</{kind}>") for part in xml if part.startswith(f"<{kind}>")
        ]
        if inside:
            merged.append(f"<{kind}>{''.join(inside)}</{kind}>")
    return merged


def _queue_xml(name: str, attributes: Mapping[str, Any]) -> str:
    written = "".join(
        f" {key}={quoteattr(text_of(value))}" for key, value in attributes.items() if key not in _ELEMENTS
    )
    inside = ""
    if "filter" in attributes:
        inside += f"<filter string={quoteattr(text_of(attributes['filter']))}/>"
    if "durable" in attributes:
        inside += f"<durable>{escape(text_of(attributes['durable']))}</durable>"
    return f"<queue name={quoteattr(name)}{written}>{inside}</queue>"


def text_of(value: object) -> str:
    """A value as XML and headers of STOMP have it, which know only texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _on_loopback(acceptors: tuple[AcceptorConfig, ...], port: int, *, http: bool) -> tuple[AcceptorConfig, ...]:
    """The acceptors that are opened, on free ports; one without TLS is made if none of them is for STOMP, or for HTTP
    where that is wanted.
    """
    kept = [replace(one, host=LOOPBACK, port=0) for one in acceptors if one.is_opened]
    stomp = stomp_acceptor(kept)
    if stomp is None:
        stomp = AcceptorConfig(name="test", host=LOOPBACK, port=0, protocols=SERVED_PROTOCOLS[:1])
    others = [one for one in kept if one.name != stomp.name]
    if http and not any("HTTP" in one.protocols for one in kept):
        others.append(AcceptorConfig(name="test-http", host=LOOPBACK, port=0, protocols=("HTTP",)))
    return (replace(stomp, port=port), *others)


def stomp_acceptor(acceptors: list[AcceptorConfig]) -> AcceptorConfig | None:
    """The acceptor that clients of a test connect to: the first for STOMP, if possible without TLS."""
    stomp = [one for one in acceptors if "STOMP" in one.protocols]
    return next((one for one in stomp if not one.is_tls), stomp[0] if stomp else None)
