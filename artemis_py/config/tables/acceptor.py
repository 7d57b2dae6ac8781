"""Acceptors: the table of their parameters (what may follow the ``?`` of the URI), and the ports that they open."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Unpack, final

from artemis_py.config.tables.declarations import NOWHERE, Origin
from artemis_py.config.tables.fields import (
    BOOLEAN,
    CHOICE,
    DOUBLE,
    INT_SIZE,
    JAVA,
    LIST,
    LONG,
    NOT_NEGATIVE,
    NOT_SPOKEN,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_POSITIVE,
    POSITIVE,
    SINGLE_NODE,
    TEXT,
    Check,
    Options,
    Setting,
    make_setting,
)
from artemis_py.units import LONG_MAX

SERVED_PROTOCOLS: Final = ("STOMP", "HTTP")
FOREIGN_PROTOCOLS: Final = ("CORE", "AMQP", "MQTT", "OPENWIRE", "HORNETQ")

# Artemis' own parameter for the handshake, in seconds; read as handshakeTimeout, which is in ms.
HANDSHAKE_SECONDS: Final = "handshake-timeout"

SERVER_HEADER: Final = "stompServerHeader"
SERVER_HEADER_CHECK: Final = Check(
    "1 to 200 visible ASCII characters and blanks, without a colon", lambda length: 0 < length <= 200
)

PROXY_NETWORKS: Final = "proxyNetworks"

ALLOWED_ORIGINS: Final = "allowedOrigins"
CONSOLE_BROKERS: Final = "consoleBrokers"

_NO_SASL: Final = "STOMP clients log in with login and passcode"
_KERNEL: Final = "the operating system sizes its socket buffers itself"


def _param(kind: str, param: str, default: object, meaning: str, **options: Unpack[Options]) -> Setting:
    options["name"] = param
    return make_setting(kind, param, default, meaning, **options)


_STOMP: Final = (
    _param(LIST, "protocols", ("STOMP",), "protocols of this acceptor: STOMP, HTTP", aliases=("protocol",)),
    _param(LIST, "anycastPrefix", (), "destination prefixes that mean anycast; removed from the address"),
    _param(LIST, "multicastPrefix", (), "destination prefixes that mean multicast; removed from the address"),
    _param(
        LONG,
        "connectionTtl",
        None,
        "how long a client without heart-beats may be silent",
        unit="ms",
        check=POSITIVE,
        shown="connection-ttl-override, else 60000",
    ),
    _param(
        LONG,
        "connectionTtlMin",
        1000,
        "shortest time that a silent connection is kept",
        unit="ms",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "connectionTtlMax",
        LONG_MAX,
        "longest time that a silent connection is kept",
        unit="ms",
        check=POSITIVE,
    ),
    _param(
        DOUBLE,
        "heartBeatToConnectionTtlModifier",
        2.0,
        "after so many of its heart-beat periods a client counts as gone",
        check=Check("0.001 to 1000", lambda value: 0.001 <= value <= 1000),
    ),
    _param(
        LONG,
        "stompConsumerWindowSize",
        10240,
        "unacknowledged bytes that a consumer may hold (not with ack:auto); -1: no limit, 0: one message",
        unit="bytes",
        check=OFF_OR_NOT_NEGATIVE,
        aliases=("stompConsumerCredits",),
    ),
    _param(
        BOOLEAN,
        "stompEnableMessageId",
        False,
        "add the header amqMessageId to messages",
        aliases=("stomp-enable-message-id",),
    ),
    _param(BOOLEAN, "disableStompServerHeader", False, "omit the header server from CONNECTED"),
    _param(
        TEXT,
        SERVER_HEADER,
        None,
        "the header server of CONNECTED (a blank is %20); with activemq in it, stomp-php speaks as with ActiveMQ",
        check=SERVER_HEADER_CHECK,
        shown="artemis_py/ and the version",
    ),
    _param(BOOLEAN, "defaultPersistent", False, "messages without the header persistent are durable"),
    _param(
        LONG,
        "stompMinLargeMessageSize",
        102400,
        "bodies of this size or more have a file of their own and are streamed; -1: never",
        unit="bytes",
        check=OFF_OR_NOT_NEGATIVE,
        aliases=("stomp-min-large-message-size",),
    ),
)

_LIMITS: Final = (
    _param(LONG, "connectionsAllowed", -1, "maximum connections; -1: no limit", check=OFF_OR_POSITIVE),
    _param(
        LONG,
        "handshakeTimeout",
        10000,
        "how long a client may take to send CONNECT and log in; 0: no limit",
        unit="ms",
        check=NOT_NEGATIVE,
    ),
    _param(
        LONG,
        "maxConnectionsBeforeLogin",
        None,
        "maximum connections of one IP address (IPv6: one /64) that have not logged in; -1: no limit",
        check=OFF_OR_POSITIVE,
        shown="256 with security-enabled, else no limit",
    ),
    _param(
        LONG,
        "maxConnectBytes",
        16384,
        "maximum size of the headers of CONNECT; at most maxHeaderBytes",
        unit="bytes",
        check=POSITIVE,
    ),
    _param(LONG, "maxHeaderLineBytes", 16384, "maximum length of a header line", unit="bytes", check=POSITIVE),
    _param(LONG, "maxHeaders", 512, "maximum headers in a frame", check=POSITIVE),
    _param(LONG, "maxHeaderBytes", 65536, "maximum size of all headers of a frame", unit="bytes", check=POSITIVE),
    _param(LONG, "maxBodyBytes", 104857600, "maximum size of a body", unit="bytes", check=POSITIVE),
    _param(
        LONG,
        "maxUnsentBytes",
        67108864,
        "maximum bytes that wait for a client that does not read; beyond it the connection is closed",
        unit="bytes",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "maxLogBytesPerSecond",
        268435456,
        "maximum rate at which all HTTP clients together get the log; -1: no limit",
        unit="bytes",
        check=OFF_OR_POSITIVE,
    ),
    _param(
        LONG,
        "busyLogBytesPerSecond",
        16777216,
        "maximum rate for HTTP clients on the broker's own machine while the broker is busy; -1: no separate limit",
        unit="bytes",
        check=OFF_OR_POSITIVE,
    ),
    _param(LONG, "maxSelectorBytes", 8192, "maximum length of a subscription's selector", unit="bytes", check=POSITIVE),
    _param(
        LONG,
        "maxSelectorTerms",
        1000,
        "maximum names, values, operators and keywords in a selector",
        check=POSITIVE,
    ),
    _param(
        LIST,
        "allowedHosts",
        (),
        "host names that HTTP requests may use, besides localhost, the acceptor's host and IP addresses; *: any. "
        "/metrics and /health are not restricted, except on a loopback address where users log in",
    ),
    _param(
        LIST,
        CONSOLE_BROKERS,
        (),
        "HTTP acceptors of other brokers in the console here (http://broker2.example:8161); their allowedOrigins must "
        "list this one",
    ),
    _param(
        CHOICE,
        "openWithoutLogin",
        None,
        "what HTTP clients get without a login; metrics includes health",
        choices=("none", "health", "metrics"),
        shown="metrics on a loopback address, else none",
    ),
    _param(LONG, "maxSubscriptions", 1024, "maximum subscriptions of a connection", check=POSITIVE),
    _param(
        LONG,
        "maxTemporaryDestinations",
        1024,
        "maximum temporary destinations of a connection",
        check=POSITIVE,
    ),
    _param(LONG, "maxTransactions", 256, "maximum open transactions of a connection", check=POSITIVE),
    _param(
        LONG,
        "maxTransactionBytes",
        104857600,
        "maximum bytes in the open transactions of a connection",
        unit="bytes",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "maxTransactionOperations",
        10_000,
        "maximum messages sent, acknowledged and refused in the open transactions of a connection; all clients wait "
        "while a COMMIT runs",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "maxTransactionPlaces",
        250_000,
        "maximum queues that a transaction's messages go to, summed over the messages (of consecutive messages where "
        "no queue has a filter, eight queues count as one)",
        check=POSITIVE,
    ),
)

_SOCKET: Final = (
    _param(LONG, "backlog", 128, "maximum connections that wait to be accepted", check=INT_SIZE),
    _param(TEXT, "securityDomain", None, "the domain of login.config in which clients of this port log in"),
    _param(BOOLEAN, "autoStart", True, "open the port at start"),
    _param(BOOLEAN, "tcpNoDelay", True, "send small packets without delay"),
    _param(BOOLEAN, "tcpKeepAlive", True, "let the operating system detect vanished clients, within 2 minutes"),
    _param(
        BOOLEAN,
        "proxyProtocolEnabled",
        False,
        "connections must begin with a header of the PROXY protocol (version 1 or 2), in which a load balancer names "
        "the client",
        aliases=("proxyEnabled",),
    ),
    _param(
        LIST,
        PROXY_NETWORKS,
        ("127.0.0.0/8", "::1/128"),
        "with proxyProtocolEnabled: addresses and networks of load balancers; connections from elsewhere are closed",
    ),
)

_WEBSOCKET: Final = (
    _param(
        LONG,
        "webSocketMaxFramePayloadLength",
        65536,
        "maximum length of a client's WebSocket frame; longer messages to it are sent in fragments of at most this "
        "length and 256 KiB",
        unit="bytes",
        check=POSITIVE,
        aliases=("stompMaxFramePayloadLength",),
    ),
    _param(
        CHOICE,
        "webSocketEncoderType",
        None,
        "what WebSocket clients get; a client that sends text gets binary messages only for frames that are not UTF-8",
        choices=("text", "binary"),
        shown="as the client",
    ),
    _param(
        BOOLEAN,
        "webSocketCompressionSupported",
        False,
        "compress WebSocket messages for clients that ask (permessage-deflate)",
    ),
    _param(
        LIST,
        ALLOWED_ORIGINS,
        (),
        "origins of web pages (https://shop.example) that may open a WebSocket; *: any. With protocols=HTTP: those "
        "that may use the API (CORS), such as another broker's console; never *. Only browsers are restricted",
        shown="any, with protocols=HTTP none",
    ),
)

_WITHOUT: Final = (
    _param(LONG, "tcpSendBufferSize", 1048576, "send buffer of the socket", unit="bytes", tuning=_KERNEL),
    _param(LONG, "tcpReceiveBufferSize", 1048576, "receive buffer of the socket", unit="bytes", tuning=_KERNEL),
    _param(TEXT, "saslMechanisms", None, "login mechanisms", ignored=_NO_SASL),
    _param(TEXT, "saslLoginConfigScope", None, "realm of these mechanisms", ignored=_NO_SASL),
    _param(TEXT, "router", None, "connection router", ignored=SINGLE_NODE),
    _param(TEXT, "clusterConnection", None, "cluster connection", ignored=SINGLE_NODE),
)

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
"""What ``enabledProtocols`` may enable, in order."""
OLD_VERSIONS: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
"""Always off: Artemis switches off the first two, today's Java the others."""
_STORE_KINDS: Final = ("keyStoreType", "keyStoreProvider", "trustStoreType", "trustStoreProvider")

TLS13_SUITES: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
NO_SUITE: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""Java lists it among the suites; OpenSSL always has what it stands for."""

OPENSSL_NAMES: Final = {
    "TLS_DHE_DSS_WITH_AES_128_CBC_SHA": "DHE-DSS-AES128-SHA",
    "TLS_DHE_DSS_WITH_AES_128_CBC_SHA256": "DHE-DSS-AES128-SHA256",
    "TLS_DHE_DSS_WITH_AES_128_GCM_SHA256": "DHE-DSS-AES128-GCM-SHA256",
    "TLS_DHE_DSS_WITH_AES_256_CBC_SHA": "DHE-DSS-AES256-SHA",
    "TLS_DHE_DSS_WITH_AES_256_CBC_SHA256": "DHE-DSS-AES256-SHA256",
    "TLS_DHE_DSS_WITH_AES_256_GCM_SHA384": "DHE-DSS-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": "DHE-RSA-AES128-SHA256",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA": "DHE-RSA-AES256-SHA",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM": "ECDHE-ECDSA-AES128-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8": "ECDHE-ECDSA-AES128-CCM8",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CCM": "ECDHE-ECDSA-AES256-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8": "ECDHE-ECDSA-AES256-CCM8",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""Suites up to TLS 1.2: those of Java 17, and the CCM suites of small devices. The name in Java and with IANA (RFCs
5246, 5288, 5289, 7251, 7905), and OpenSSL's name (``openssl ciphers -stdname``).
"""

_CONTENT: Final = "the content of the file says what it is"
_OPENSSL: Final = "TLS is OpenSSL's here"

_TLS: Final = (
    _param(BOOLEAN, "sslEnabled", False, "the port speaks TLS; needs keyStorePath"),
    _param(
        LONG,
        "sslHandshakeTimeout",
        None,
        "how long a client may take for the TLS handshake; 0: no limit",
        unit="s",
        check=NOT_NEGATIVE,
        shown="handshakeTimeout, or 10 where that is 0",
    ),
    _param(TEXT, "keyStorePath", None, "key and certificates of the acceptor: PEM, PEMCFG, PKCS12 or JKS"),
    _param(TEXT, "keyStorePassword", None, "password of this file"),
    _param(TEXT, "keyPassword", None, "password of the key in it", shown="keyStorePassword"),
    _param(TEXT, "keyStoreAlias", None, "name of the key, if the file has several"),
    _param(TEXT, "trustStorePath", None, "issuers of clients' certificates, in the same kinds of files"),
    _param(TEXT, "trustStorePassword", None, "password of this file"),
    _param(BOOLEAN, "needClientAuth", False, "clients must have a certificate; needs trustStorePath"),
    _param(BOOLEAN, "wantClientAuth", False, "clients may have a certificate; needs trustStorePath"),
    _param(LIST, "enabledProtocols", TLS_VERSIONS, f"of {', '.join(TLS_VERSIONS)}; older ones are always off"),
    _param(
        LIST,
        "enabledCipherSuites",
        (),
        "cipher suites by Java's (IANA's) names; those of TLS 1.3 all or none",
        shown="OpenSSL's choice",
    ),
    _param(
        TEXT,
        "sniHost",
        None,
        "regular expression; a server name in the client's handshake must match it",
    ),
    _param(TEXT, "crlPath", None, "list of revoked certificates (CRL), PEM or DER"),
    _param(
        BOOLEAN,
        "sslAutoReload",
        False,
        "new connections get the new certificate when a file changes",
    ),
    _param(
        BOOLEAN,
        "verifyHost",
        False,
        "a client's certificate must name its address",
        refused="this version does not compare certificates with the addresses of clients",
    ),
    _param(
        BOOLEAN,
        "trustAll",
        False,
        "accept every client certificate",
        refused="it would accept certificates that anybody made; name the issuers with trustStorePath",
    ),
    _param(
        TEXT,
        "trustManagerFactoryPlugin",
        None,
        "Java class that decides whom to trust",
        refused="it is a Java class; name the issuers with trustStorePath",
    ),
    _param(
        BOOLEAN,
        "useDefaultSslContext",
        False,
        "the Java virtual machine's own keys",
        refused="there is no Java virtual machine here; name a file with keyStorePath",
    ),
    _param(
        TEXT,
        "crcOptions",
        None,
        "online checks of revocation",
        refused="this version asks no servers about certificates; use crlPath",
    ),
    _param(
        TEXT,
        "ocspResponderURL",
        None,
        "server for such checks",
        refused="this version asks no servers about certificates; use crlPath",
    ),
    *(_param(TEXT, name, None, "kind of a store", ignored=_CONTENT, silent=True) for name in _STORE_KINDS),
    *(
        _param(TEXT, name, None, "a choice of Java", ignored=_OPENSSL, silent=True)
        for name in ("sslProvider", "sslContext", "forceSSLParameters")
    ),
)

# Parameters that say nothing to this broker, and that need no notice: of Java's network layer, and of protocols that
# are reported by their own name.
_MASKING_NAMES: Final = ("activemq.passwordcodec", "activemq.usemaskedpassword")
_JAVA_NAMES: Final = """
remotingThreads nioRemotingThreads useEpoll useKQueue useIoUring useNio useInvm useGlobalWorkerPool
useNioGlobalWorkerPool quietPeriod shutdownTimeout batchDelay directDeliver writeBufferLowWaterMark
writeBufferHighWaterMark bufferPooling activemqServerName httpEnabled httpClientIdleTime
httpClientIdleScanPeriod httpResponseTime httpServerScanPeriod httpRequiresSessionId httpUpgradeEnabled
httpUpgradeEndpoint useServlet servletPath
"""
_FOREIGN_NAMES: Final = """
amqpCredits amqpLowCredits amqpMinLargeMessageSize amqpMinCredits amqpIdleTimeout amqpDuplicateDetection
amqpDrainOnTransientDeliveryErrors amqpLinkQuiesceTimeout ackManagerFlushTimeout maxTransfersPerDelivery
mirrorMaxPendingAcks pubSubPrefix
amqpTreatRejectAsUnmodifiedDeliveryFailed amqpUseModifiedForTransientDeliveryErrors
amqpUseCoreSubscriptionNaming maxFrameSize jmsEnabled initialRemoteMaxFrameSize virtualTopicConsumerWildcards
virtualTopicConsumerLruCacheMax supportAdvisory suppressInternalManagementObjects openWireMaxPacketSize
openwireMaxPacketSize openwireMaxPacketChunkSize openWireDestinationCacheSize actorThresholdBytes
openwireUseDuplicateDetectionOnFailover updateClusterClients updateClusterClientsOnRemove
rebalanceClusterClients useKeepAlive maxInactivityDuration maxInactivityDurationInitalDelay
defaultMqttSessionExpiryInterval maximumPacketSize receiveMaximum serverKeepAlive topicAliasMaximum
closeMqttConnectionOnPublishAuthorizationFailure allowLinkStealing maximumInFlightPublishMessages
defaultMaximumInFlightPublishMessages
"""

TLS_NAMES: Final = frozenset(row.name for row in _TLS)
"""Parameters that mean nothing without ``sslEnabled``."""


PARAMS: Final = (
    *_STOMP,
    *_LIMITS,
    *_SOCKET,
    *_WEBSOCKET,
    *_WITHOUT,
    *_TLS,
    *(_param(TEXT, name, None, "how passwords of stores are masked", silent=True) for name in _MASKING_NAMES),
    *(_param(TEXT, name, None, "Java's network layer", ignored=JAVA, silent=True) for name in _JAVA_NAMES.split()),
    *(_param(TEXT, name, None, "another protocol", ignored=NOT_SPOKEN, silent=True) for name in _FOREIGN_NAMES.split()),
)


@functools.cache
def known_params() -> Mapping[str, Setting]:
    """Every acceptor parameter by name, old names included."""
    rows = {row.name: row for row in PARAMS}
    for row in PARAMS:
        rows.update(dict.fromkeys(row.aliases, row))
    return rows


_LOOPBACK_NAMES: Final = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``: localhost, 127.0.0.0/8, ::1."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    import ipaddress

    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptorConfig:
    """One listening port. ``params`` holds the checked texts of the URI by their current names.

    ``protocols`` are the protocols served on this port. ``refused`` is the reason why the server must not open the
    port, or None.
    """

    name: str
    host: str
    port: int
    protocols: tuple[str, ...] = SERVED_PROTOCOLS[:1]
    params: dict[str, str] = field(default_factory=dict)
    origin: Origin = NOWHERE
    refused: str | None = None

    @property
    def is_opened(self) -> bool:
        """Does the broker open this port when it starts?"""
        return self.refused is None and bool(self.protocols) and self.bool_param("autoStart")

    @property
    def place(self) -> str:
        """Where it listens, as ``host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_tls(self) -> bool:
        """Does the port speak TLS?"""
        return self.bool_param("sslEnabled")

    def text_param(self, name: str) -> str | None:
        """Return a parameter as it is written; None if the URI lacks it, or it is empty."""
        return self.params.get(name) or None

    def int_param(self, name: str, default: int | None = None) -> int:
        """Return a parameter as a whole number. If the URI lacks it: ``default``, else the table's default.

        Raises KeyError for a parameter that the table lacks, and TypeError when there is no default.
        """
        text = self.params.get(name)
        if text is None and default is not None:
            return default
        return int(text if text is not None else known_params()[name].default)

    def float_param(self, name: str) -> float:
        """Like :meth:`int_param` for a number with a fraction."""
        text = self.params.get(name)
        return float(text if text is not None else known_params()[name].default)

    def bool_param(self, name: str) -> bool:
        """Like :meth:`int_param` for a boolean; as in Artemis, any text except ``true`` is false."""
        text = self.params.get(name)
        return text.lower() == "true" if text is not None else bool(known_params()[name].default)

    def list_param(self, name: str) -> tuple[str, ...]:
        """Like :meth:`int_param` for a comma-separated list; empty parts are skipped."""
        text = self.params.get(name)
        if text is not None:
            return tuple(part for part in text.split(",") if part)
        return tuple(known_params()[name].default)
