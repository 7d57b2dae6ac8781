"""Bridges, which forward a queue to another broker, and connectors, which say where that is: what broker.xml declares
of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Unpack, final

from artemis_py.config.tables.acceptor import PARAMS as ACCEPTOR_PARAMS
from artemis_py.config.tables.declarations import DIVERT_ROUTING_TYPES, NOWHERE, Origin
from artemis_py.config.tables.fields import (
    BOOLEAN,
    IGNORED,
    LONG,
    NOT_EMPTY,
    NOT_NEGATIVE,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_POSITIVE,
    SINGLE_NODE,
    TEXT,
    Check,
    Options,
    Setting,
    boolean,
    choice,
    double,
    int32,
    int64,
    make_setting,
    size,
    text,
)

# ---- connectors ------------------------------------------------------------------------------------------------------


def _param(kind: str, param: str, default: object, meaning: str, **options: Unpack[Options]) -> Setting:
    options["name"] = param
    return make_setting(kind, param, default, meaning, **options)


CONNECT_MS: Final = "connect-timeout-millis"
_OPENSSL: Final = "TLS is OpenSSL's here, from version 1.2 on"
_OWN_PARAMS: Final = (
    _param(BOOLEAN, "sslEnabled", False, "the connection speaks TLS"),
    _param(TEXT, "trustStorePath", None, "issuers of the other broker's certificate", shown="the system's"),
    _param(TEXT, "trustStorePassword", None, "password of this file"),
    _param(TEXT, "keyStorePath", None, "key and certificates of this broker, if the other one asks for them"),
    _param(TEXT, "keyStorePassword", None, "password of this file"),
    _param(TEXT, "keyPassword", None, "password of the key in it", shown="keyStorePassword"),
    _param(TEXT, "keyStoreAlias", None, "name of the key, if the file has several"),
    _param(BOOLEAN, "verifyHost", True, "the other broker's certificate must name the host"),
    _param(BOOLEAN, "trustAll", False, "accept every certificate (unsafe)"),
    _param(TEXT, "sniHost", None, "the name for the handshake, and in the certificate"),
    _param(
        LONG, CONNECT_MS, 10_000, "how long connecting, and then logging in, may take", unit="ms", check=OFF_OR_POSITIVE
    ),
    _param(
        TEXT,
        "virtualHost",
        None,
        "the header host of CONNECT; RabbitMQ's virtual host, such as `/` (our addition)",
        shown="the host of the URI",
    ),
    _param(TEXT, "enabledProtocols", None, "versions of TLS", ignored=_OPENSSL),
    _param(TEXT, "enabledCipherSuites", None, "cipher suites of TLS", ignored=_OPENSSL),
)
_OWN_NAMES: Final = frozenset(row.name for row in _OWN_PARAMS)
CONNECTOR_PARAMS: Final[Mapping[str, Setting]] = {
    **{row.name: row for row in ACCEPTOR_PARAMS if row.name not in _OWN_NAMES and (row.treatment == IGNORED)},
    **{
        name: _param(TEXT, name, None, "how passwords of stores are masked", silent=True)
        for name in ("activemq.passwordcodec", "activemq.usemaskedpassword")
    },
    **{
        name: _param(TEXT, name, None, "what is so in any case", ignored="it is so in any case", silent=True)
        for name in ("tcpNoDelay", "protocols")
    },
    **{row.name: row for row in _OWN_PARAMS},
}
"""By name. What Artemis knows of its network layer means nothing here, as in the URI of an acceptor."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConnectorConfig:
    """Where another broker listens for STOMP. ``params`` holds the checked texts of the URI."""

    name: str
    host: str
    port: int
    params: dict[str, str] = field(default_factory=dict)
    origin: Origin = NOWHERE

    @property
    def place(self) -> str:
        """Where the other broker listens, as ``host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_tls(self) -> bool:
        """Does the connection speak TLS?"""
        return self.flag("sslEnabled")

    @property
    def connect_ms(self) -> int:
        """How long an attempt may take."""
        given = self.params.get(CONNECT_MS)
        return int(given) if given is not None and int(given) > 0 else int(CONNECTOR_PARAMS[CONNECT_MS].default)

    def text(self, name: str) -> str | None:
        """A parameter as it is written; None if the URI lacks it, or it is empty."""
        return self.params.get(name) or None

    def flag(self, name: str) -> bool:
        """A parameter that is true or false; as in Artemis, any text except ``true`` is false."""
        given = self.params.get(name)
        return bool(CONNECTOR_PARAMS[name].default) if given is None else given.lower() == "true"


# ---- bridges ---------------------------------------------------------------------------------------------------------

CONCURRENCY_MAX: Final = 64
_CONCURRENCY: Final = Check(f"1 to {CONCURRENCY_MAX}", lambda value: 1 <= value <= CONCURRENCY_MAX)
_WINDOW: Final = "maximum bytes on the way that the other broker has not confirmed; -1: no limit"
_JAVA_CLASS: Final = "Java classes cannot run here; messages are forwarded unchanged"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BridgeConfig:
    """A bridge: forwards the messages of a queue to another broker, the first of ``connectors`` that can be reached.
    No ``repr`` has the password.
    """

    name: str
    queue_name: str = text("", "the queue whose messages are forwarded", shown="required", check=NOT_EMPTY)
    forwarding_address: str | None = text(
        None,
        "the destination there, as the other broker's clients write it",
        shown="the address to which the message was sent",
    )
    filter: str | None = text(None, "selector (in filter's attribute string): other messages stay on the queue")
    routing_type: str = choice(
        "PASS",
        DIVERT_ROUTING_TYPES,
        "routing type (header destination-type) there: the message's own (PASS), none (STRIP), or the one named",
    )
    user: str | None = text(None, "login at the other broker")
    password: str | None = text(None, "its password; `ENC(…)` is unmasked")
    client_id: str | None = text(None, "header client-id of CONNECT")
    retry_interval: int = int64(2000, "pause before connecting again", unit="ms", check=NOT_NEGATIVE)
    retry_interval_multiplier: float = double(
        1.0, "factor of each further pause", check=Check("1 or more", lambda value: value >= 1)
    )
    max_retry_interval: int = int64(2000, "the longest pause", unit="ms", check=NOT_NEGATIVE)
    initial_connect_attempts: int = int32(
        -1,
        "failed attempts after which a bridge that was never connected stops; -1: never",
        check=OFF_OR_NOT_NEGATIVE,
    )
    reconnect_attempts: int = int32(-1, "the same for a bridge that was connected", check=OFF_OR_NOT_NEGATIVE)
    use_duplicate_detection: bool = boolean(
        True,
        "a header `_AMQ_DUPL_ID`, by which the other broker drops what comes twice",
    )
    confirmation_window_size: int = size(1_048_576, _WINDOW, check=OFF_OR_POSITIVE)
    producer_window_size: int = size(
        1_048_576,
        "maximum bytes on the way, as confirmation-window-size; the smaller one counts",
        check=OFF_OR_POSITIVE,
    )
    concurrency: int = int32(1, "connections, which share the messages", check=_CONCURRENCY)
    check_period: int = int64(
        30_000, "how often the other broker is to send a heart-beat; -1: never", unit="ms", check=OFF_OR_POSITIVE
    )
    connection_ttl: int = int64(
        60_000, "this broker sends a heart-beat every half of it; -1: never", unit="ms", check=OFF_OR_POSITIVE
    )
    pending_ack_timeout: int = int64(
        60_000, "how long a stopped bridge waits for confirmations", unit="ms", check=NOT_NEGATIVE
    )
    ha: bool = boolean(False, "learn of a backup", ignored="the connectors are tried in their order")
    transformer_class_name: str | None = text(
        None, "a class that changes messages, in its old form", ignored=_JAVA_CLASS
    )
    reconnect_attempts_same_node: int = int32(10, "attempts before others of a cluster", ignored=SINGLE_NODE)
    failover_on_server_shutdown: bool = boolean(
        False, "use a backup after an orderly stop", ignored="the connectors are tried in their order"
    )
    min_large_message_size: int = size(
        102_400, "larger messages are sent in parts", tuning="STOMP has one form for messages of every size"
    )
    connectors: tuple[ConnectorConfig, ...] = ()
    origin: Origin = NOWHERE

    @property
    def window_bytes(self) -> int:
        """How many bytes may be unconfirmed; -1: any number."""
        windows = [size for size in (self.confirmation_window_size, self.producer_window_size) if size > 0]
        return min(windows, default=-1)

    @property
    def places(self) -> str:
        """Where the other broker listens, with commas between."""
        return ",".join(connector.place for connector in self.connectors)
