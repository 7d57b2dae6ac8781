"""What ``broker.properties`` calls a setting where that is not the name of its element in camel case.

Artemis sets properties by the names of the setters of its own classes. These were read off Artemis 2.44 and tried on
its parser; ``tests/unit/config/beans.txt`` is the whole list.
"""

from __future__ import annotations

from typing import Final

CORE_BEANS: Final = {
    "connectionTTLOverride": "connection-ttl-override",
    "enabledAsyncConnectionExecution": "async-connection-execution-enabled",
    "IDCacheSize": "id-cache-size",
    "iDCacheSize": "id-cache-size",
    "JMXDomain": "jmx-domain",
    "JMXManagementEnabled": "jmx-management-enabled",
    "JMXUseBrokerName": "jmx-use-broker-name",
    "journalBufferSize_AIO": "journal-buffer-size",
    "journalBufferSize_NIO": "journal-buffer-size",
    "journalBufferTimeout_AIO": "journal-buffer-timeout",
    "journalBufferTimeout_NIO": "journal-buffer-timeout",
    "journalMaxIO_AIO": "journal-max-io",
    "journalMaxIO_NIO": "journal-max-io",
    "networCheckNIC": "network-check-NIC",
    "pageMaxConcurrentIO": "page-max-concurrent-io",
    "persistIDCache": "persist-id-cache",
    "wildcardRoutingEnabled": "wild-card-routing-enabled",
}
"""Plain settings: from the property to the element."""

PART_BEANS: Final = {
    "AMQPConnectionConfigurations": "broker-connections",
    "AMQPConnections": "broker-connections",
    "bridgeConfigurations": "bridges",
    "broadcastGroupConfigurations": "broadcast-groups",
    "brokerPlugins": "broker-plugins",
    "clusterConfigurations": "cluster-connections",
    "connectionRouters": "connection-routers",
    "connectorConfigurations": "connectors",
    "connectorServiceConfigurations": "connector-services",
    "discoveryGroupConfigurations": "discovery-groups",
    "federationConfigurations": "federations",
    "groupingHandlerConfiguration": "grouping-handler",
    "HAPolicyConfiguration": "ha-policy",
    "incomingInterceptorClassNames": "remoting-incoming-interceptors",
    "metricsConfiguration": "metrics",
    "metricsPlugin": "metrics-plugin",
    "outgoingInterceptorClassNames": "remoting-outgoing-interceptors",
    "securitySettingPlugins": "security-settings/security-setting-plugin",
    "storeConfiguration": "store",
}
"""Structures that have no effect here: from the property to the element."""

_OF_ARTEMIS_ITSELF: Final = "it is internal to Artemis"

INTERNAL_BEANS: Final = {
    "brokerInstance": _OF_ARTEMIS_ITSELF,
    "brokerPropertiesKeySurround": "write key.surround in the properties file instead",
    "checkForPrimaryServer": "this broker is a single node",
    "configurationUrl": _OF_ARTEMIS_ITSELF,
    "failoverOnServerShutdown": "this broker is a single node",
    "fileDeployerScanPeriod": "it has no effect in Artemis either",
    "journalMaxAtticFiles": "journal files without live records are deleted or retained, never reused",
    "status": _OF_ARTEMIS_ITSELF,
}
"""What Artemis takes and no element stands for, with the reason why it has no effect here."""

SETTING_BEANS: Final = {
    "addressFullMessagePolicy": "address-full-policy",
    "diskFullMessagePolicy": "disk-full-policy",
    "IDCacheSize": "id-cache-size",
    "iDCacheSize": "id-cache-size",
    "pageCacheMaxSize": "page-max-cache-size",
    "pageFullMessagePolicy": "page-full-policy",
    "queuePrefetch": "default-consumer-window-size",
    "redeliveryMultiplier": "redelivery-delay-multiplier",
    "sendToDLAOnNoRoute": "send-to-dla-on-no-route",
}
"""Properties of address-settings. ``queuePrefetch`` limits clients of OpenWire, which is not spoken here."""

QUEUE_BEANS: Final = {"filterString": "filter"}
"""Properties of queues and diverts."""

QUIET_QUEUE_BEANS: Final = (
    "address", "autoCreateAddress", "autoCreated", "configurationManaged", "id", "internal", "name", "temporary",
    "transient",
)  # fmt: skip
"""What Artemis keeps of a queue for itself, or says already by where the property stands."""

_BY_SETTINGS: Final = "address-settings decide when queues are deleted automatically"

IGNORED_QUEUE_BEANS: Final = {
    "autoDelete": _BY_SETTINGS,
    "autoDeleteDelay": _BY_SETTINGS,
    "autoDeleteMessageCount": _BY_SETTINGS,
    "consumerPriority": "each consumer sets its own priority",
}
"""Properties of queues without effect here, each with the reason."""
