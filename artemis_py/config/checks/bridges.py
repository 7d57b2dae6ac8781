"""What prevents a bridge, and what may not be meant; and the connectors to which bridges refer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from artemis_py.config.checks.addresses import Readers
from artemis_py.config.draft import BridgeDraft, Draft
from artemis_py.config.elements import UriError, parse_uri
from artemis_py.config.problems import nearest, unless_newer
from artemis_py.config.settings import SettingsRepository
from artemis_py.config.tables.acceptor import AcceptorConfig, is_loopback
from artemis_py.config.tables.bridges import CONNECTOR_PARAMS, BridgeConfig, ConnectorConfig
from artemis_py.config.tables.declarations import AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.fields import BOOLEAN, IGNORED, ValueTextError, parse_value, show
from artemis_py.config.tables.queue_settings import QueueSettings, queue_settings

_EXAMPLE: Final = "<static-connectors><connector-ref>name</connector-ref></static-connectors>"
_BREAKS: Final = "\0\r\n"
_EVERYWHERE: Final = ("0.0.0.0", "::")
_PREFIXES: Final = ("anycastPrefix", "multicastPrefix")


def make_bridges(
    draft: Draft, addresses: Sequence[AddressConfig], settings: SettingsRepository
) -> tuple[BridgeConfig, ...]:
    """Check every bridge of the draft and freeze it; problems are added to the draft's."""
    made: dict[str, ConnectorConfig | None] = {}
    queues = {queue.name: queue for address in addresses for queue in address.queues}
    found: list[BridgeConfig] = []
    for each in draft.bridges.values():
        connectors = _connectors(draft, each, made)
        values: dict[str, Any] = dict(each.written.values)
        for name in ("forwarding_address", "user", "password", "client_id"):
            values[name] = values.get(name) or None
        bridge = BridgeConfig(name=each.name, connectors=connectors, origin=each.origin, **values)
        _check(draft, each, bridge)
        _check_queue(draft, bridge, queues.get(bridge.queue_name.rpartition("::")[2]), settings)
        found.append(bridge)
    return tuple(found)


def why_not(own: QueueSettings) -> str:
    """Why a bridge cannot forward a queue with these settings, as the end of a sentence; empty: it can."""
    if own.non_destructive:
        return "is non-destructive: nothing leaves it, so each connection would forward everything again"
    if own.delivery_semantics == "at-most-once":
        return "has delivery-semantics at-most-once: what is sent is gone, so a lost connection would lose messages"
    return ""


def returning(
    bridges: Sequence[BridgeConfig], acceptors: Sequence[AcceptorConfig], readers: Readers
) -> Iterator[tuple[BridgeConfig, str, str]]:
    """Bridges that connect to this broker itself, as far as the file tells: each with an address whose messages it
    forwards, and the address to which they come back.
    """
    queues = {queue.name: queue for declared in readers.own.values() for queue in declared}
    for bridge in bridges:
        queue = queues.get(bridge.queue_name.rpartition("::")[2])
        acceptor = next((each for each in acceptors if _is_joined(bridge, each)), None)
        if queue is None or acceptor is None:
            continue
        target = bridge.forwarding_address
        if target is not None:
            prefixes = [prefix for name in _PREFIXES for prefix in acceptor.list_param(name)]
            target = target.removeprefix(next(filter(target.startswith, prefixes), ""))
        for source in readers.sources_of(queue):
            if target is None or target.rpartition("::")[2] == queue.name:
                yield bridge, source, source
            else:
                yield bridge, source, target


def _is_joined(bridge: BridgeConfig, acceptor: AcceptorConfig) -> bool:
    """Does a connector of the bridge lead to this acceptor?"""
    host = acceptor.host.lower()
    for connector in bridge.connectors:
        is_near = is_loopback(connector.host) and (is_loopback(host) or host in _EVERYWHERE)
        if connector.port == acceptor.port and (is_near or connector.host.lower() == host):
            return True
    return False


def _check(draft: Draft, each: BridgeDraft, bridge: BridgeConfig) -> None:
    problems, origins = draft.problems, each.written.origins
    name = f"bridge {bridge.name!r}"
    if not bridge.queue_name and not problems.has_error_at(each.origin):
        problems.error(each.origin, f"{name} has no queue-name")
    if not each.connectors and not problems.has_error_at(each.origin):
        problems.error(each.origin, f"{name} names no other broker", allowed=_EXAMPLE)
    if bridge.password is not None and bridge.user is None:
        problems.error(origins["password"], f"{name} has a password and no user")
    for attribute in ("user", "client_id", "forwarding_address"):
        text = getattr(bridge, attribute)
        if text is not None and any(character in text for character in _BREAKS):
            problems.error(origins[attribute], f"{name}: {attribute.replace('_', '-')} has a line break or NUL in it")
    if bridge.max_retry_interval < bridge.retry_interval and "retry_interval" in origins:
        problems.warning(
            "doubtful-value",
            origins["retry_interval"],
            f"{name}: no pause is longer than max-retry-interval ({bridge.max_retry_interval} ms)",
            value=str(bridge.retry_interval),
        )


def _check_queue(draft: Draft, bridge: BridgeConfig, queue: QueueConfig | None, settings: SettingsRepository) -> None:
    what = f"bridge {bridge.name!r}: queue {bridge.queue_name!r}"
    if queue is None:
        if bridge.queue_name:
            draft.problems.warning(
                "doubtful-value",
                bridge.origin,
                f"{what} is not declared; the bridge waits until somebody creates it",
                allowed="a queue in addresses",
            )
        return
    own = queue_settings(queue, settings.settings_for(queue.address))
    why = why_not(own)
    if why:
        draft.problems.error(bridge.origin, f"{what} ({queue.origin}) {why}")
    elif queue.purge_on_no_consumers:
        draft.problems.warning(
            "loses-messages",
            bridge.origin,
            f"{what} has purge-on-no-consumers: it is emptied whenever the bridge has no connection",
        )


# ---- connectors ------------------------------------------------------------------------------------------------------


def _connectors(
    draft: Draft, each: BridgeDraft, made: dict[str, ConnectorConfig | None]
) -> tuple[ConnectorConfig, ...]:
    found: list[ConnectorConfig] = []
    for name, origin in each.connectors:
        if name not in draft.connectors:
            draft.problems.error(
                origin,
                f"bridge {each.name!r}: there is no connector of this name in connectors",
                value=name,
                suggestion=nearest(name, draft.connectors),
            )
            continue
        if name not in made:
            made[name] = _connector(draft, name, *draft.connectors[name])
        connector = made[name]
        if connector is not None:
            found.append(connector)
    return tuple(found)


def _connector(draft: Draft, name: str, text: str, origin: Origin) -> ConnectorConfig | None:
    try:
        parts = parse_uri(name, text, origin)
        if parts.scheme != "tcp":
            raise UriError(f"a bridge cannot use the scheme {parts.scheme}")
        if not parts.port:
            raise UriError("the port is 0", "a port from 1 to 65535")
    except UriError as problem:
        what = f"connector {name!r}: {problem}"
        draft.problems.error(origin, what, value=text.strip(), allowed=problem.allowed)
        return None
    params = _params(draft, name, parts.params, origin)
    connector = ConnectorConfig(name=name, host=parts.host, port=parts.port, params=params, origin=origin)
    if connector.is_tls and connector.flag("trustAll"):
        draft.problems.warning(
            "doubtful-value",
            origin,
            f"connector {name!r}: with trustAll anybody between the brokers can read and change messages",
            allowed="trustStorePath with the certificates to trust",
        )
    if connector.text("keyStorePath") and not connector.is_tls:
        draft.problems.error(origin, f"connector {name!r}: keyStorePath needs sslEnabled=true")
    return connector


def _params(draft: Draft, name: str, given: Mapping[str, str], origin: Origin) -> dict[str, str]:
    params: dict[str, str] = {}
    for param, text in given.items():
        row = CONNECTOR_PARAMS.get(param)
        if row is None:
            guess = nearest(param, (known for known, at in CONNECTOR_PARAMS.items() if at.treatment != IGNORED))
            what = f"connector {name!r}: unknown parameter {param} is ignored{unless_newer(param, guess)}"
            draft.problems.warning("left-out", origin, what, suggestion=guess)
            continue
        try:
            value = parse_value(row, text, is_attribute=True)
        except ValueTextError as problem:
            what = f"connector {name!r}: parameter {param} has a wrong value"
            draft.problems.error(origin, what, value=text, allowed=problem.allowed)
            continue
        if row.kind == BOOLEAN and text.lower() not in ("true", "false"):
            what = f"connector {name!r}: parameter {param} is read as false"
            draft.problems.warning("doubtful-value", origin, what, value=text, allowed="true, false")
        if row.treatment == IGNORED and not row.silent and show(value) != show(row.default):
            draft.ignore_setting(row, origin, f"connector parameter {param}")
        params[param] = text
    return params
