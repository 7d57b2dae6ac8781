"""The plain elements of ``core``: one text, number or word each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.config.tables.fields import (
    INT_SIZE,
    JAVA,
    NO_COUNTERS,
    NO_EFFECT,
    NOT_EMPTY,
    NOT_NEGATIVE,
    NOT_SPOKEN,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_PERCENT,
    OFF_OR_POSITIVE,
    PERCENT,
    POSITIVE,
    SINGLE_NODE,
    Check,
    boolean,
    choice,
    int32,
    int64,
    size,
    text,
)

_NO_TRANSACTION_TIMEOUT: Final = "a STOMP transaction ends with its connection"
_NO_ANALYSER: Final = "there are no threads to watch: the broker runs in turns on one thread"
_NO_THREADS: Final = "the broker runs in turns on one thread"
INTERNAL_PREFIX: Final = "$.artemis.internal."
"""With what the names of internal addresses begin."""
_NO_INTERNALS: Final = f"here internal addresses begin with {INTERNAL_PREFIX}"
_COUNTED_AFTER: Final = "a failed delivery is journaled when it fails"
_ONE_COUNT: Final = "every failed delivery is journaled, and compaction keeps the last count"
_IN_JOURNAL: Final = "addresses and queues are stored in the journal"
_KNOWN_READERS: Final = "each operation has its permission, view or edit, whatever its name"
_LOCK: Final = "the lock file is in journal-directory"
_LOCK_CHECKED: Final = "the lock is checked twice a second"
_LOCK_LOST: Final = "a broker whose lock cannot be confirmed stops at once, since another one may have it"
_WRITTEN: Final = "files are written with pwrite and fdatasync"
_DELETED: Final = "journal files without live records are deleted or retained, never reused"
_NO_BUFFER: Final = "a batch is written when the previous one is durable"
_ONE_BATCH: Final = "one batch is written at a time"
_ONE_OPEN: Final = "opening a journal file has no time limit"
_RATE: Final = "the broker logs nothing while it runs normally"
_PAGE_SYNCED: Final = "pages are synced with the batch that refers to them, as soon as the previous batch is durable"
_ONE_READER: Final = "one thread reads pages, one part at a time"
_NO_FOLDERS: Final = "all pages are directly in paging-directory"
_IN_PARTS: Final = "pages are read in parts of 512 KiB, to keep turns short"

_FILE_SIZE: Final = Check("1 to 1073741824 (1G)", lambda value: 1 <= value <= 1024**3)
"""A start reads a file of the journal as a whole, and the first message in it waits until it is made."""
_FILES: Final = Check("1 to 1000", lambda value: 1 <= value <= 1000)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CoreSettings:
    """Every plain element of ``core``; times in ms unless the table says otherwise.

    A table of fields for :class:`~artemis_py.config.settings.BrokerConfig`; never created on its own.
    """

    # The broker
    name: str = text("localhost", "name of the broker, in metrics and logs")
    system_property_prefix: str = text(
        "brokerconfig.", "prefix of Java system properties", check=NOT_EMPTY, tuning=JAVA
    )
    internal_naming_prefix: str = text(INTERNAL_PREFIX, "prefix of internal addresses", tuning=_NO_INTERNALS)
    uuid_namespace: str = text(
        "",
        "namespace in which settings of temporary destinations are looked up",
        check=NOT_EMPTY,
        shown="empty",
        aliases=("temporary-queue-namespace",),
    )
    literal_match_markers: str | None = text(None, "two characters around a match that is literal")
    wild_card_routing_enabled: bool = boolean(
        True, "deprecated; use routing-enabled in wildcard-addresses", tuning=NO_EFFECT
    )
    configuration_file_refresh_period: int = int64(
        5000,
        "how often the files of the configuration, and of acceptors with sslAutoReload, are checked for changes if the "
        "system does not report them; -1: they are not watched",
        unit="ms",
        check=OFF_OR_POSITIVE,
    )
    graceful_shutdown_enabled: bool = boolean(
        False,
        "before a stop, accept no clients, deliver nothing more, and wait until what is in delivery is settled; a "
        "second signal ends the wait",
    )
    graceful_shutdown_timeout: int = int64(
        -1, "maximum time of this wait; -1: no limit", unit="ms", check=OFF_OR_NOT_NEGATIVE
    )
    resolve_protocols: bool = boolean(True, "search the class path for protocols", tuning=JAVA)
    async_connection_execution_enabled: bool = boolean(True, "pass packets to a thread pool", tuning=_NO_THREADS)
    scheduled_thread_pool_max_size: int = int32(
        5, ("number of threads for scheduled work"), check=POSITIVE, tuning=_NO_THREADS
    )
    thread_pool_max_size: int = int32(30, "number of worker threads", check=OFF_OR_POSITIVE, tuning=_NO_THREADS)
    log_delegate_factory_class_name: str | None = text(None, "Java class for logging", tuning=NO_EFFECT)

    # Connections, transactions, scans
    connection_ttl_override: int = int64(
        -1,
        ("time after which a silent connection is closed, for all clients; -1: 60000"),
        unit="ms",
        check=OFF_OR_POSITIVE,
    )
    connection_ttl_check_interval: int = int64(
        2000,
        "how often connections are checked",
        unit="ms",
        check=POSITIVE,
        tuning="silent connections are detected in every turn of the broker",
    )
    transaction_timeout: int = int64(
        300000, "maximum lifetime of a transaction", unit="ms", check=POSITIVE, ignored=_NO_TRANSACTION_TIMEOUT
    )
    transaction_timeout_scan_period: int = int64(
        1000, "how often transactions are checked", unit="ms", check=POSITIVE, ignored=_NO_TRANSACTION_TIMEOUT
    )
    message_expiry_scan_period: int = int64(
        30000,
        ("how often expired messages are removed; -1: only when a consumer would get them"),
        unit="ms",
        check=OFF_OR_POSITIVE,
    )
    message_expiry_thread_priority: int = int32(3, "priority of a thread", tuning=NO_EFFECT)
    address_queue_scan_period: int = int64(
        30000,
        "how often queues and addresses are checked for automatic deletion; -1: never",
        unit="ms",
        check=OFF_OR_POSITIVE,
    )
    id_cache_size: int = int32(20000, "duplicate ids remembered for each address", check=NOT_NEGATIVE)
    persist_id_cache: bool = boolean(True, "keep duplicate ids across a restart")
    persist_delivery_count_before_delivery: bool = boolean(
        False, "store delivery counts before delivery", tuning=_COUNTED_AFTER
    )
    max_redelivery_records: int = int64(
        10, "delivery counts stored per message", check=OFF_OR_NOT_NEGATIVE, tuning=_ONE_COUNT
    )

    # Security
    security_enabled: bool = boolean(
        True, "clients log in; while no users are known, only ports on loopback addresses are opened"
    )
    security_invalidation_interval: int = int64(
        10000,
        "how long results of logins are remembered; 0: not at all",
        unit="ms",
        check=NOT_NEGATIVE,
    )
    authentication_cache_size: int = int64(
        1000, "remembered logins, right ones and wrong ones each", check=NOT_NEGATIVE
    )
    authorization_cache_size: int = int64(
        1000, "addresses and queues whose security-setting is remembered", check=NOT_NEGATIVE
    )
    populate_validated_user: bool = boolean(False, "set the header `JMSXUserID` of each message to the sender's user")
    reject_empty_validated_user: bool = boolean(
        False, "refuse messages without such a user; without populate-validated-user: all messages"
    )
    mask_password: bool | None = boolean(
        None, "true: all passwords of stores are masked; false: none; absent: those in ENC(…)", shown="absent"
    )
    password_codec: str | None = text(
        None, "what unmasks passwords: Artemis' own codec, also with ;key=…", shown="Artemis' default"
    )

    # Management
    management_address: str = text("activemq.management", "address for management messages", check=NOT_EMPTY)
    management_notification_address: str = text("activemq.notifications", "address of notifications", check=NOT_EMPTY)
    management_message_rbac: bool = boolean(
        False, "management messages need `view` or `edit` for their operation, besides `manage`"
    )
    management_rbac_prefix: str = text(
        "mops",
        "first word of the addresses that permissions of operations are on: `mops.broker.getLog`",
        check=NOT_EMPTY,
    )
    view_permission_method_match_pattern: str = text(
        "^(get|is|count|list|browse|query).*$", "operations that only read", ignored=_KNOWN_READERS
    )
    suppress_session_notifications: bool = boolean(False, "send no notifications about sessions")
    jmx_management_enabled: bool = boolean(True, "management by JMX", tuning=JAVA)
    jmx_notification_enabled: bool = boolean(True, "notifications by JMX", tuning=JAVA)
    jmx_domain: str = text("org.apache.activemq.artemis", "domain of the beans that Jolokia names", check=NOT_EMPTY)
    jmx_use_broker_name: bool = boolean(True, "name beans after the broker; false: `broker=artemis`")
    message_counter_enabled: bool = boolean(False, "keep message counters", ignored=NO_COUNTERS)
    message_counter_sample_period: int = int64(
        10000, "period of message counters", unit="ms", check=POSITIVE, ignored=NO_COUNTERS
    )
    message_counter_max_day_history: int = int32(
        10, "days of message counters", unit="days", check=POSITIVE, ignored=NO_COUNTERS
    )

    # Memory and disk limits
    global_max_size: int = size(
        -1,
        "memory for the messages of all addresses; beyond it every address counts as full",
        check=OFF_OR_POSITIVE,
        shown="half of the machine's memory",
    )
    global_max_size_percent_of_jvm_max_memory: int = int32(
        50, "the same limit as a share of the Java heap", check=POSITIVE, tuning=JAVA
    )
    global_max_messages: int = int64(
        -1,
        "maximum messages of all addresses in memory; only with global-max-size",
        check=OFF_OR_POSITIVE,
    )
    global_max_held_size: int = size(
        -1,
        "memory for all that the broker holds for clients: messages, connections, subscriptions, queues, ids, "
        "transactions, frames; at the limit new requests are refused",
        check=OFF_OR_POSITIVE,
        shown="three quarters of the machine's memory",
    )
    max_addresses: int | None = int64(
        None,
        "maximum addresses; clients cannot create more; -1: no limit (our addition)",
        check=OFF_OR_NOT_NEGATIVE,
        shown="a quarter of the machine's memory, at 4 KiB each",
    )
    max_queues: int | None = int64(
        None,
        "maximum queues, including those of subscriptions; -1: no limit (our addition)",
        check=OFF_OR_NOT_NEGATIVE,
        shown="a quarter of the machine's memory, at 4 KiB each",
    )
    max_disk_usage: int = int32(
        90,
        "usage at which a disk of the broker counts as full; -1: no limit",
        unit="%",
        check=OFF_OR_PERCENT,
    )
    min_disk_free: int = size(
        -1,
        "free space below which a disk counts as full, instead of max-disk-usage",
        check=OFF_OR_POSITIVE,
    )
    disk_scan_period: int = int64(5000, "how often the disk is checked; -1: never", unit="ms", check=OFF_OR_POSITIVE)
    memory_warning_threshold: int = int32(
        25, ("free heap below which a warning is logged"), unit="%", check=PERCENT, tuning=JAVA
    )
    memory_measure_interval: int = int64(
        -1, "how often the heap is checked", unit="ms", check=OFF_OR_POSITIVE, tuning=JAVA
    )
    server_dump_interval: int = int64(
        -1, "how often figures of the Java process are logged", unit="ms", check=OFF_OR_POSITIVE, tuning=JAVA
    )
    critical_analyzer: bool = boolean(True, "watch for hanging threads", tuning=_NO_ANALYSER)
    critical_analyzer_timeout: int = int64(
        120000, "time after which a thread counts as hanging", unit="ms", check=NOT_NEGATIVE, tuning=_NO_ANALYSER
    )
    critical_analyzer_check_period: int = int64(
        0,
        "how often threads are checked",
        unit="ms",
        check=NOT_NEGATIVE,
        shown="half of critical-analyzer-timeout",
        tuning=_NO_ANALYSER,
    )
    critical_analyzer_policy: str = choice("LOG", ("LOG", "HALT", "SHUTDOWN"), "what happens then", tuning=_NO_ANALYSER)

    # Journal and paging
    persistence_enabled: bool = boolean(True, "keep durable messages across a restart")
    journal_directory: str = text("data/journal", "directory of the journal", check=NOT_EMPTY)
    bindings_directory: str = text("data/bindings", "directory of the bindings", check=NOT_EMPTY, tuning=_IN_JOURNAL)
    paging_directory: str = text("data/paging", "directory of the pages", check=NOT_EMPTY)
    large_messages_directory: str = text("data/largemessages", "directory of large message bodies", check=NOT_EMPTY)
    node_manager_lock_directory: str | None = text(None, "directory of the lock file", tuning=_LOCK)
    create_journal_dir: bool = boolean(True, "create the directory if it is missing")
    create_bindings_dir: bool = boolean(True, "create the directory if it is missing", tuning=_IN_JOURNAL)
    journal_type: str = choice("ASYNCIO", ("ASYNCIO", "NIO", "MAPPED"), "how the journal is written", tuning=_WRITTEN)
    journal_datasync: bool = boolean(True, "sync the journal to disk")
    journal_sync_transactional: bool = boolean(True, "wait for the disk at COMMIT")
    journal_sync_non_transactional: bool = boolean(True, "wait for the disk at each message")
    large_message_sync: bool = boolean(True, "sync large message bodies to disk")
    journal_file_size: int = size(10 * 1024**2, "size of a journal file", check=_FILE_SIZE)
    journal_min_files: int = int32(2, "minimum journal files, created ahead or in use", check=_FILES)
    journal_pool_files: int = int32(-1, "number of journal files kept", check=OFF_OR_POSITIVE, tuning=_DELETED)
    journal_buffer_size: int = size(
        490 * 1024, ("size of the buffer in front of the journal"), check=INT_SIZE, tuning=_NO_BUFFER
    )
    journal_buffer_timeout: int | None = int64(
        None, "maximum delay of this buffer", unit="ns", check=NOT_NEGATIVE, tuning=_NO_BUFFER
    )
    journal_max_io: int | None = int32(None, "maximum number of concurrent writes", check=POSITIVE, tuning=_ONE_BATCH)
    journal_compact_min_files: int = int32(10, "minimum files before compaction", check=NOT_NEGATIVE)
    journal_compact_percentage: int = int32(
        30, "share of live records below which compaction starts", unit="%", check=PERCENT
    )
    journal_file_open_timeout: int = int32(
        5, "maximum time to wait for a journal file", unit="s", check=POSITIVE, tuning=_ONE_OPEN
    )
    journal_device_block_size: int | None = int64(
        None, "block size of the disk", unit="bytes", check=OFF_OR_NOT_NEGATIVE, tuning=_WRITTEN
    )
    journal_lock_acquisition_timeout: int = int64(
        -1,
        "how long a broker with ha-policy waits for the lock before it ends; -1: for ever",
        unit="ms",
        check=OFF_OR_POSITIVE,
    )
    journal_lock_monitor_timeout: int = int64(
        2000, "how often the lock is checked while it is held", unit="ms", check=POSITIVE, tuning=_LOCK_CHECKED
    )
    journal_lock_monitor_max_retries: int = int32(
        0,
        "how often a failed check is repeated before the lock counts as lost",
        check=NOT_NEGATIVE,
        ignored=_LOCK_LOST,
    )
    log_journal_write_rate: bool = boolean(False, "log the write rate of the journal", tuning=_RATE)
    page_sync_timeout: int | None = int32(
        None, "maximum delay before a page is synced to disk", unit="ns", check=NOT_NEGATIVE, tuning=_PAGE_SYNCED
    )
    page_max_concurrent_io: int = int32(
        5, ("maximum number of concurrent page reads"), check=OFF_OR_POSITIVE, tuning=_ONE_READER
    )
    purge_page_folders: bool = boolean(False, "delete empty page directories", tuning=_NO_FOLDERS)
    read_whole_page: bool = boolean(False, "read whole pages", tuning=_IN_PARTS)

    # Cluster, mirror, network and other protocols
    cluster_user: str = text("ACTIVEMQ.CLUSTER.ADMIN.USER", "user within the cluster", ignored=SINGLE_NODE)
    cluster_password: str = text("CHANGE ME!!", "password within the cluster", ignored=SINGLE_NODE)
    mirror_ack_manager_queue_attempts: int = int32(5, "attempts of a mirror", ignored=SINGLE_NODE)
    mirror_ack_manager_page_attempts: int = int32(2, "attempts of a mirror", ignored=SINGLE_NODE)
    mirror_ack_manager_retry_delay: int = int32(100, "delay of a mirror", unit="ms", ignored=SINGLE_NODE)
    mirror_ack_manager_warn_unacked: bool = boolean(False, "warnings of a mirror", ignored=SINGLE_NODE)
    mirror_page_transaction: bool = boolean(False, "pages in mirrors", ignored=SINGLE_NODE)
    network_check_list: str = text("", "hosts whose answer shows that the network works", ignored=SINGLE_NODE)
    network_check_url_list: str = text(
        "", "URLs whose answer shows that the network works", name="network-check-URL-list", ignored=SINGLE_NODE
    )
    network_check_period: int = int64(10000, "how often they are checked", unit="ms", ignored=SINGLE_NODE)
    network_check_timeout: int = int64(1000, "maximum time to wait for an answer", unit="ms", ignored=SINGLE_NODE)
    network_check_nic: str = text("", "network interface for the check", name="network-check-NIC", ignored=SINGLE_NODE)
    network_check_ping_command: str = text("", "command for the check", ignored=SINGLE_NODE)
    network_check_ping6_command: str = text("", "command for the check", ignored=SINGLE_NODE)
    amqp_use_core_subscription_naming: bool = boolean(False, "names of subscriptions", ignored=NOT_SPOKEN)
    mqtt_session_scan_interval: int = int64(5000, "MQTT sessions", unit="ms", ignored=NOT_SPOKEN)
    mqtt_session_state_persistence_timeout: int = int64(5000, "MQTT sessions", unit="ms", ignored=NOT_SPOKEN)
    mqtt_subscription_persistence_enabled: bool = boolean(True, "MQTT subscriptions", ignored=NOT_SPOKEN)
