"""The table of acceptor parameters: what may stand behind the ``?`` of an acceptor's URI."""

from __future__ import annotations

from typing import Final, Unpack

from artemis_py.config.tables.fields import (
    BOOLEAN,
    DOUBLE,
    JAVA,
    LIST,
    LONG,
    NO_TLS,
    NOT_ENFORCED,
    NOT_NEGATIVE,
    NOT_SPOKEN,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_POSITIVE,
    POSITIVE,
    SINGLE_NODE,
    TEXT,
    Options,
    Setting,
    make_setting,
)
from artemis_py.units import LONG_MAX

SERVED_PROTOCOLS: Final = ("STOMP", "HTTP")
FOREIGN_PROTOCOLS: Final = ("CORE", "AMQP", "MQTT", "OPENWIRE", "HORNETQ")

# Artemis' own parameter for the handshake, in seconds; read as handshakeTimeout, which is in ms.
HANDSHAKE_SECONDS: Final = "handshake-timeout"

_NO_WEBSOCKET: Final = "this version has no STOMP over WebSocket"
_KERNEL: Final = "the operating system sizes its buffers itself"


def _param(kind: str, param: str, default: object, meaning: str, **options: Unpack[Options]) -> Setting:
    options["name"] = param
    return make_setting(kind, param, default, meaning, **options)


_STOMP: Final = (
    _param(LIST, "protocols", ("STOMP",), "what is spoken here: STOMP, HTTP", aliases=("protocol",)),
    _param(LIST, "anycastPrefix", (), "prefixes of destinations that mean anycast, taken off the address"),
    _param(LIST, "multicastPrefix", (), "prefixes of destinations that mean multicast, taken off the address"),
    _param(
        LONG,
        "connectionTtl",
        None,
        "how long a client without heart-beats may be silent",
        unit="ms",
        check=POSITIVE,
        shown="connection-ttl-override, else 60000",
    ),
    _param(LONG, "connectionTtlMin", 1000, "shortest life of a silent connection", unit="ms", check=POSITIVE),
    _param(LONG, "connectionTtlMax", LONG_MAX, "longest life of a silent connection", unit="ms", check=POSITIVE),
    _param(
        DOUBLE,
        "heartBeatToConnectionTtlModifier",
        2.0,
        "a client is gone after this many of its heart-beat periods",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "stompConsumerWindowSize",
        10240,
        "bytes a consumer may hold unacknowledged in the client modes; -1: no limit, 0: one message",
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
    _param(BOOLEAN, "disableStompServerHeader", False, "leave the header server out of CONNECTED"),
    _param(BOOLEAN, "defaultPersistent", False, "messages without the header persistent are durable"),
    _param(
        LONG,
        "stompMinLargeMessageSize",
        102400,
        "size from which a body goes to a file of its own and is streamed in and out; -1: never",
        unit="bytes",
        check=OFF_OR_NOT_NEGATIVE,
        aliases=("stomp-min-large-message-size",),
    ),
)

_LIMITS: Final = (
    _param(LONG, "connectionsAllowed", -1, "connections at once; -1: any number", check=OFF_OR_POSITIVE),
    _param(
        LONG,
        "handshakeTimeout",
        10000,
        "how long a client may take to send CONNECT; 0: for ever",
        unit="ms",
        check=NOT_NEGATIVE,
    ),
    _param(LONG, "maxHeaderLineBytes", 16384, "longest header line", unit="bytes", check=POSITIVE),
    _param(LONG, "maxHeaders", 512, "most headers of a frame", check=POSITIVE),
    _param(LONG, "maxHeaderBytes", 65536, "most bytes of all headers of a frame", unit="bytes", check=POSITIVE),
    _param(LONG, "maxBodyBytes", 104857600, "largest body", unit="bytes", check=POSITIVE),
    _param(
        LONG,
        "maxUnsentBytes",
        67108864,
        "most bytes that wait for a client that does not read",
        unit="bytes",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "maxLogBytesPerSecond",
        268435456,
        "how fast the log is sent to all HTTP clients together, so that they leave the broker its share; -1: any speed",
        unit="bytes",
        check=OFF_OR_POSITIVE,
    ),
    _param(
        LONG,
        "busyLogBytesPerSecond",
        16777216,
        "how fast the log is sent to HTTP clients on the broker's own machine while the broker is busy, because they"
        " take the processors that it needs; -1: as fast as to all",
        unit="bytes",
        check=OFF_OR_POSITIVE,
    ),
    _param(LONG, "maxSelectorBytes", 8192, "longest selector of a subscription", unit="bytes", check=POSITIVE),
    _param(LONG, "maxSelectorTerms", 1000, "most names, values, operators and keywords of a selector", check=POSITIVE),
    _param(
        LIST,
        "allowedHosts",
        (),
        "names under which the log may be read over HTTP, beside localhost, the acceptor's host and addresses as"
        " numbers; *: any. /metrics and /health need none",
    ),
    _param(LONG, "maxSubscriptions", 1024, "most subscriptions of a connection", check=POSITIVE),
    _param(LONG, "maxTemporaryDestinations", 1024, "most temporary destinations of a connection", check=POSITIVE),
    _param(LONG, "maxTransactions", 256, "most open transactions of a connection", check=POSITIVE),
    _param(
        LONG,
        "maxTransactionBytes",
        104857600,
        "most bytes in the open transactions of a connection",
        unit="bytes",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "maxTransactionOperations",
        10_000,
        "most messages sent, acknowledged and refused in the open transactions of a connection: a COMMIT is one piece"
        " of work, for which all other clients wait",
        check=POSITIVE,
    ),
    _param(
        LONG,
        "maxTransactionPlaces",
        250_000,
        "how many queues the messages of a transaction may meet, each counted for itself (eight count as one for"
        " messages that stand behind each other, where no queue has a filter): COMMIT decides about all of them in one"
        " piece",
        check=POSITIVE,
    ),
)

_SOCKET: Final = (
    _param(LONG, "backlog", 128, "connections that wait to be accepted", check=POSITIVE),
    _param(BOOLEAN, "autoStart", True, "open the port at start"),
    _param(BOOLEAN, "tcpNoDelay", True, "send small packets at once"),
    _param(BOOLEAN, "tcpKeepAlive", True, "let the system find clients that are gone: within 2 minutes"),
    _param(
        BOOLEAN,
        "sslEnabled",
        False,
        "TLS; the port is not opened, because it would speak plain text",
        refused=NO_TLS,
    ),
    _param(
        BOOLEAN,
        "proxyProtocolEnabled",
        False,
        "the PROXY protocol of load balancers; the port is not opened",
        refused="this version does not read the header of the PROXY protocol",
    ),
)

_WITHOUT: Final = (
    _param(
        LONG,
        "webSocketMaxFramePayloadLength",
        65536,
        "longest WebSocket frame",
        unit="bytes",
        aliases=("stompMaxFramePayloadLength",),
        ignored=_NO_WEBSOCKET,
    ),
    _param(TEXT, "webSocketEncoderType", "binary", "text or binary WebSocket frames", ignored=_NO_WEBSOCKET),
    _param(BOOLEAN, "webSocketCompressionSupported", False, "compressed WebSocket frames", ignored=_NO_WEBSOCKET),
    _param(LONG, "tcpSendBufferSize", 1048576, "send buffer of the socket", unit="bytes", tuning=_KERNEL),
    _param(LONG, "tcpReceiveBufferSize", 1048576, "receive buffer of the socket", unit="bytes", tuning=_KERNEL),
    _param(TEXT, "securityDomain", None, "realm that users log in to", ignored=NOT_ENFORCED),
    _param(TEXT, "saslMechanisms", None, "ways to log in", ignored=NOT_ENFORCED),
    _param(TEXT, "saslLoginConfigScope", None, "realm for these", ignored=NOT_ENFORCED),
    _param(TEXT, "router", None, "connection router", ignored=SINGLE_NODE),
    _param(TEXT, "clusterConnection", None, "cluster connection", ignored=SINGLE_NODE),
)

# Parameters that say nothing to this broker, and that need no notice: of TLS (without it the port is not opened, with
# it off they mean nothing), of Java's network layer, and of protocols that are reported by their own name.
_TLS_NAMES: Final = """
keyStorePath keyStorePassword keyStoreType keyStoreAlias keyStoreProvider trustStorePath trustStorePassword
trustStoreType trustStoreProvider needClientAuth wantClientAuth verifyHost sniHost enabledProtocols
enabledCipherSuites crlPath crcOptions ocspResponderURL sslAutoReload sslProvider sslContext trustAll
forceSSLParameters useDefaultSslContext trustManagerFactoryPlugin
"""
_JAVA_NAMES: Final = """
remotingThreads nioRemotingThreads useEpoll useKQueue useIoUring useNio useInvm useGlobalWorkerPool
useNioGlobalWorkerPool quietPeriod shutdownTimeout batchDelay directDeliver writeBufferLowWaterMark
writeBufferHighWaterMark bufferPooling activemqServerName httpEnabled httpClientIdleTime
httpClientIdleScanPeriod httpResponseTime httpServerScanPeriod httpRequiresSessionId httpUpgradeEnabled
httpUpgradeEndpoint useServlet servletPath
"""
_FOREIGN_NAMES: Final = """
amqpCredits amqpLowCredits amqpMinLargeMessageSize amqpMinCredits amqpIdleTimeout amqpDuplicateDetection
amqpTreatRejectAsUnmodifiedDeliveryFailed amqpUseModifiedForTransientDeliveryErrors
amqpUseCoreSubscriptionNaming maxFrameSize jmsEnabled initialRemoteMaxFrameSize virtualTopicConsumerWildcards
virtualTopicConsumerLruCacheMax supportAdvisory suppressInternalManagementObjects openWireMaxPacketSize
openwireMaxPacketSize useKeepAlive maxInactivityDuration maxInactivityDurationInitalDelay
defaultMqttSessionExpiryInterval maximumPacketSize receiveMaximum serverKeepAlive topicAliasMaximum
closeMqttConnectionOnPublishAuthorizationFailure allowLinkStealing maximumInFlightPublishMessages
"""

PARAMS: Final = (
    *_STOMP,
    *_LIMITS,
    *_SOCKET,
    *_WITHOUT,
    *(_param(TEXT, name, None, "TLS", ignored=NO_TLS, silent=True) for name in _TLS_NAMES.split()),
    *(_param(TEXT, name, None, "Java's network layer", ignored=JAVA, silent=True) for name in _JAVA_NAMES.split()),
    *(_param(TEXT, name, None, "another protocol", ignored=NOT_SPOKEN, silent=True) for name in _FOREIGN_NAMES.split()),
)
