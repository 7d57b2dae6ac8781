"""Names of settings in ``broker.properties`` that differ from the element's name in camel case.

Artemis names properties after the setters of its classes. These names come from Artemis up to 2.57 and were tried on
its parser; ``tests/unit/config/beans.txt`` has the whole list.
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
    "JMXNotificationEnabled": "jmx-notification-enabled",
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
"""Plain settings: property to element."""

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
    "incomingInterceptorClassNames": "remoting-incoming-interceptors",
    "lockCoordinatorConfigurations": "lock-coordinators",
    "metricsConfiguration": "metrics",
    "metricsPlugin": "metrics-plugin",
    "outgoingInterceptorClassNames": "remoting-outgoing-interceptors",
    "securitySettingPlugins": "security-settings/security-setting-plugin",
    "storeConfiguration": "store",
}
"""Structures without effect here: property to element."""

_OF_ARTEMIS_ITSELF: Final = "it is internal to Artemis"

INTERNAL_BEANS: Final = {
    "brokerInstance": _OF_ARTEMIS_ITSELF,
    "brokerPropertiesKeySurround": "write key.surround in the properties file instead",
    "checkForPrimaryServer": "this broker is a single node",
    "configurationUrl": _OF_ARTEMIS_ITSELF,
    "failoverOnServerShutdown": "write HAPolicyConfiguration.failoverOnServerShutdown instead",
    "federationDownstreamAuthorization": "this version has no federation",
    "fileDeployerScanPeriod": "it has no effect in Artemis either",
    "jaasConfigs": "logins are configured in login.config, or in the element authentication",
    "journalMaxAtticFiles": "journal files without live records are deleted or retained, never reused",
    "status": _OF_ARTEMIS_ITSELF,
}
"""Properties of Artemis that have no element, with the reason why they have no effect here."""

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
"""Properties of address-settings. ``queuePrefetch`` limits clients of OpenWire, which this broker does not support."""

QUEUE_BEANS: Final = {"filterString": "filter"}
"""Properties of queues and diverts."""

QUIET_QUEUE_BEANS: Final = (
    "address", "autoCreateAddress", "autoCreated", "configurationManaged", "id", "internal", "name", "temporary",
    "transient",
)  # fmt: skip
"""Properties that Artemis uses internally, or that the property's path already gives."""

_BY_SETTINGS: Final = "address-settings decide when queues are deleted automatically"

IGNORED_QUEUE_BEANS: Final = {
    "autoDelete": _BY_SETTINGS,
    "autoDeleteDelay": _BY_SETTINGS,
    "autoDeleteMessageCount": _BY_SETTINGS,
    "consumerPriority": "each consumer sets its own priority",
}
"""Properties of queues without effect here, each with its reason."""
