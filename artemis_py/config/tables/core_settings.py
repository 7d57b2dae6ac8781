"""The plain elements of ``core``: one text, number or word each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.config.tables.fields import (
    INT_SIZE,
    JAVA,
    NO_EFFECT,
    NO_MANAGEMENT,
    NO_RELOAD,
    NOT_EMPTY,
    NOT_ENFORCED,
    NOT_NEGATIVE,
    NOT_SPOKEN,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_PERCENT,
    OFF_OR_POSITIVE,
    PERCENT,
    POSITIVE,
    SINGLE_NODE,
    boolean,
    choice,
    int32,
    int64,
    size,
    text,
)

_NO_TRANSACTION_TIMEOUT: Final = "a STOMP transaction ends with its connection"
_NO_ANALYSER: Final = "there are no threads to watch: the broker works in turns on one thread"
_NO_THREADS: Final = "the broker works in turns on one thread"
_NO_INTERNALS: Final = "internal addresses begin with $.artemis.internal. here"
_COUNTED_AFTER: Final = "a failed delivery is in the journal when it has failed"
_ONE_COUNT: Final = "every failed delivery is in the journal, and compaction keeps the last count"
_IN_JOURNAL: Final = "addresses and queues are in the journal"
_LOCK: Final = "the lock file is in journal-directory"
_WRITTEN: Final = "files are written with pwrite and fdatasync"
_DELETED: Final = "a journal file in which nothing lives is deleted or retained, not used again"
_NO_BUFFER: Final = "a batch is written when the one before is durable"
_ONE_BATCH: Final = "one batch is written at a time"
_ONE_OPEN: Final = "journal files are opened without a time limit"
_NO_WAIT: Final = "a broker that finds the journal in use ends at once"
_RATE: Final = "nothing is logged while the broker runs well"
_PAGE_SYNCED: Final = "pages are synced with the batch that speaks of them, as soon as the one before is durable"
_ONE_READER: Final = "one thread reads pages, one part after the other"
_NO_FOLDERS: Final = "all pages are in paging-directory itself"
_IN_PARTS: Final = "pages are read in parts of 512 KiB, so that no turn takes long"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CoreSettings:
    """Every plain element of ``core``; times in ms unless the table says otherwise.

    A table of fields for :class:`~artemis_py.config.settings.BrokerConfig`, not made by itself.
    """

    # The broker
    name: str = text("localhost", "name of the broker, in metrics and logs")
    system_property_prefix: str = text(
        "brokerconfig.", "prefix of Java system properties", check=NOT_EMPTY, tuning=JAVA
    )
    internal_naming_prefix: str = text("$.artemis.internal.", "prefix of internal addresses", tuning=_NO_INTERNALS)
    uuid_namespace: str = text(
        "",
        "settings for addresses named by a UUID are looked up under this name",
        check=NOT_EMPTY,
        shown="empty",
        aliases=("temporary-queue-namespace",),
    )
    literal_match_markers: str | None = text(None, "two characters around a match that is to be taken letter by letter")
    wild_card_routing_enabled: bool = boolean(
        True, "old switch; write wildcard-addresses with routing-enabled instead", tuning=NO_EFFECT
    )
    configuration_file_refresh_period: int = int64(
        5000, "how often the file is looked at for changes", unit="ms", check=OFF_OR_POSITIVE, ignored=NO_RELOAD
    )
    graceful_shutdown_enabled: bool = boolean(
        False, "wait for clients before stopping", ignored="this version stops at once"
    )
    graceful_shutdown_timeout: int = int64(
        -1, "how long to wait", unit="ms", check=OFF_OR_NOT_NEGATIVE, ignored="this version stops at once"
    )
    resolve_protocols: bool = boolean(True, "look for protocols on the class path", tuning=JAVA)
    async_connection_execution_enabled: bool = boolean(True, "hand packets over to a thread pool", tuning=_NO_THREADS)
    scheduled_thread_pool_max_size: int = int32(5, "threads for schedules", check=POSITIVE, tuning=_NO_THREADS)
    thread_pool_max_size: int = int32(30, "threads for work", check=OFF_OR_POSITIVE, tuning=_NO_THREADS)
    log_delegate_factory_class_name: str | None = text(None, "Java class for logging", tuning=NO_EFFECT)

    # Connections, transactions, scans
    connection_ttl_override: int = int64(
        -1, "how long a silent connection may live, for all clients; -1: 60000", unit="ms", check=OFF_OR_POSITIVE
    )
    connection_ttl_check_interval: int = int64(
        2000,
        "how often connections are looked at",
        unit="ms",
        check=POSITIVE,
        tuning="silent connections are found in every turn of the broker",
    )
    transaction_timeout: int = int64(
        300000, "longest life of a transaction", unit="ms", check=POSITIVE, ignored=_NO_TRANSACTION_TIMEOUT
    )
    transaction_timeout_scan_period: int = int64(
        1000, "how often transactions are looked at", unit="ms", check=POSITIVE, ignored=_NO_TRANSACTION_TIMEOUT
    )
    message_expiry_scan_period: int = int64(
        30000, "how often expired messages are taken out; -1: only when met", unit="ms", check=OFF_OR_POSITIVE
    )
    message_expiry_thread_priority: int = int32(3, "priority of a thread", tuning=NO_EFFECT)
    address_queue_scan_period: int = int64(
        30000,
        "how often queues and addresses that delete themselves are looked for; -1: never",
        unit="ms",
        check=OFF_OR_POSITIVE,
    )
    id_cache_size: int = int32(20000, "duplicate ids remembered for each address", check=NOT_NEGATIVE)
    persist_id_cache: bool = boolean(True, "keep duplicate ids over a restart")
    persist_delivery_count_before_delivery: bool = boolean(
        False, "store delivery counts before delivery", tuning=_COUNTED_AFTER
    )
    max_redelivery_records: int = int64(
        10, "delivery counts stored per message", check=OFF_OR_NOT_NEGATIVE, tuning=_ONE_COUNT
    )

    # Security
    security_enabled: bool = boolean(
        True, "while true, only loopback addresses are listened on, because no password is checked yet"
    )
    security_invalidation_interval: int = int64(
        10000, "life of a cached decision", unit="ms", check=NOT_NEGATIVE, ignored=NOT_ENFORCED
    )
    authentication_cache_size: int = int64(1000, "cached logins", check=NOT_NEGATIVE, ignored=NOT_ENFORCED)
    authorization_cache_size: int = int64(1000, "cached permissions", check=NOT_NEGATIVE, ignored=NOT_ENFORCED)
    populate_validated_user: bool = boolean(False, "add the user's name to messages", ignored=NOT_ENFORCED)
    reject_empty_validated_user: bool = boolean(False, "refuse messages without a user's name", ignored=NOT_ENFORCED)
    mask_password: bool | None = boolean(None, "passwords in the file are masked", ignored=NOT_ENFORCED)
    password_codec: str | None = text(None, "Java class that unmasks passwords", tuning=JAVA)

    # Management
    management_address: str = text(
        "activemq.management", "address of management by messages", check=NOT_EMPTY, ignored=NO_MANAGEMENT
    )
    management_notification_address: str = text(
        "activemq.notifications", "address of notifications", check=NOT_EMPTY, ignored=NO_MANAGEMENT
    )
    management_message_rbac: bool = boolean(False, "permissions for management by messages", ignored=NO_MANAGEMENT)
    management_rbac_prefix: str = text("mops", "prefix of these permissions", ignored=NO_MANAGEMENT)
    view_permission_method_match_pattern: str = text(
        "^(get|is|count|list|browse|query).*$", "operations that only look", ignored=NO_MANAGEMENT
    )
    suppress_session_notifications: bool = boolean(False, "no notifications of sessions", ignored=NO_MANAGEMENT)
    jmx_management_enabled: bool = boolean(True, "management by JMX", tuning=JAVA)
    jmx_domain: str = text("org.apache.activemq.artemis", "name in JMX", tuning=JAVA)
    jmx_use_broker_name: bool = boolean(True, "use the broker's name in JMX", tuning=JAVA)
    message_counter_enabled: bool = boolean(False, "message counters", ignored=NO_MANAGEMENT)
    message_counter_sample_period: int = int64(
        10000, "period of message counters", unit="ms", check=POSITIVE, ignored=NO_MANAGEMENT
    )
    message_counter_max_day_history: int = int32(
        10, "days of message counters", unit="days", check=POSITIVE, ignored=NO_MANAGEMENT
    )

    # Memory and disk limits
    global_max_size: int = size(
        -1,
        "memory for the messages of all addresses; beyond it every address that takes a message is full",
        check=OFF_OR_POSITIVE,
        shown="half of the machine's memory",
    )
    global_max_size_percent_of_jvm_max_memory: int = int32(
        50, "the same as a share of the Java heap", check=POSITIVE, tuning=JAVA
    )
    global_max_messages: int = int64(
        -1, "messages of all addresses in memory; counts only with global-max-size", check=OFF_OR_POSITIVE
    )
    global_max_held_size: int = size(
        -1,
        "memory for everything that clients make the broker hold: messages, connections, subscriptions, selectors,"
        " queues, ids, transactions, frames not finished or not read; at the limit what is new is refused",
        check=OFF_OR_POSITIVE,
        shown="three quarters of the machine's memory",
    )
    max_addresses: int | None = int64(
        None,
        "addresses that clients may bring into being, with those that are there; -1: no limit (our addition)",
        check=OFF_OR_NOT_NEGATIVE,
        shown="a quarter of the machine's memory, at 4 KiB each",
    )
    max_queues: int | None = int64(
        None,
        "the same for queues, with those of subscriptions and temporary ones; -1: no limit (our addition)",
        check=OFF_OR_NOT_NEGATIVE,
        shown="a quarter of the machine's memory, at 4 KiB each",
    )
    max_disk_usage: int = int32(
        90,
        "a disk (of journal, pages or large bodies) is full from this share on; -1: no limit",
        unit="%",
        check=OFF_OR_PERCENT,
    )
    min_disk_free: int = size(
        -1,
        "a disk is full with so little left; set, it counts instead of max-disk-usage",
        check=OFF_OR_POSITIVE,
    )
    disk_scan_period: int = int64(5000, "how often the disk is looked at; -1: never", unit="ms", check=OFF_OR_POSITIVE)
    memory_warning_threshold: int = int32(25, "free heap that is warned of", unit="%", check=PERCENT, tuning=JAVA)
    memory_measure_interval: int = int64(
        -1, "how often the heap is looked at", unit="ms", check=OFF_OR_POSITIVE, tuning=JAVA
    )
    server_dump_interval: int = int64(
        -1, "how often figures of the Java process are logged", unit="ms", check=OFF_OR_POSITIVE, tuning=JAVA
    )
    critical_analyzer: bool = boolean(True, "watch for threads that hang", tuning=_NO_ANALYSER)
    critical_analyzer_timeout: int = int64(
        120000, "when a thread hangs", unit="ms", check=NOT_NEGATIVE, tuning=_NO_ANALYSER
    )
    critical_analyzer_check_period: int = int64(
        0,
        "how often threads are looked at",
        unit="ms",
        check=NOT_NEGATIVE,
        shown="half of critical-analyzer-timeout",
        tuning=_NO_ANALYSER,
    )
    critical_analyzer_policy: str = choice("LOG", ("LOG", "HALT", "SHUTDOWN"), "what happens then", tuning=_NO_ANALYSER)

    # Journal and paging
    persistence_enabled: bool = boolean(True, "keep durable messages over a restart")
    journal_directory: str = text("data/journal", "where the journal is", check=NOT_EMPTY)
    bindings_directory: str = text("data/bindings", "where bindings are", check=NOT_EMPTY, tuning=_IN_JOURNAL)
    paging_directory: str = text("data/paging", "where pages are", check=NOT_EMPTY)
    large_messages_directory: str = text("data/largemessages", "where bodies of large messages are", check=NOT_EMPTY)
    node_manager_lock_directory: str | None = text(None, "where the lock file is", tuning=_LOCK)
    create_journal_dir: bool = boolean(True, "make the directory when it is missing")
    create_bindings_dir: bool = boolean(True, "make the directory when it is missing", tuning=_IN_JOURNAL)
    journal_type: str = choice("ASYNCIO", ("ASYNCIO", "NIO", "MAPPED"), "how the journal is written", tuning=_WRITTEN)
    journal_datasync: bool = boolean(True, "force the journal to disk")
    journal_sync_transactional: bool = boolean(True, "wait for the disk at COMMIT")
    journal_sync_non_transactional: bool = boolean(True, "wait for the disk at each message")
    large_message_sync: bool = boolean(True, "force bodies of large messages to disk")
    journal_file_size: int = size(10 * 1024**2, "size of a journal file", check=INT_SIZE)
    journal_min_files: int = int32(2, "journal files made ahead, with those in use", check=POSITIVE)
    journal_pool_files: int = int32(-1, "journal files kept", check=OFF_OR_POSITIVE, tuning=_DELETED)
    journal_buffer_size: int = size(490 * 1024, "buffer before the journal", check=INT_SIZE, tuning=_NO_BUFFER)
    journal_buffer_timeout: int | None = int64(
        None, "longest wait of this buffer", unit="ns", check=NOT_NEGATIVE, tuning=_NO_BUFFER
    )
    journal_max_io: int | None = int32(None, "writes under way at once", check=POSITIVE, tuning=_ONE_BATCH)
    journal_compact_min_files: int = int32(10, "files before compaction", check=NOT_NEGATIVE)
    journal_compact_percentage: int = int32(
        30, "share of live records below which compaction begins", unit="%", check=PERCENT
    )
    journal_file_open_timeout: int = int32(
        5, "longest wait for a journal file", unit="s", check=POSITIVE, tuning=_ONE_OPEN
    )
    journal_device_block_size: int | None = int64(
        None, "block size of the disk", unit="bytes", check=OFF_OR_NOT_NEGATIVE, tuning=_WRITTEN
    )
    journal_lock_acquisition_timeout: int = int64(
        -1, "longest wait for the lock", unit="ms", check=OFF_OR_POSITIVE, tuning=_NO_WAIT
    )
    log_journal_write_rate: bool = boolean(False, "log how fast the journal is written", tuning=_RATE)
    page_sync_timeout: int | None = int32(
        None, "longest wait before a page is forced to disk", unit="ns", check=NOT_NEGATIVE, tuning=_PAGE_SYNCED
    )
    page_max_concurrent_io: int = int32(5, "page reads at once", check=OFF_OR_POSITIVE, tuning=_ONE_READER)
    purge_page_folders: bool = boolean(False, "delete empty page directories", tuning=_NO_FOLDERS)
    read_whole_page: bool = boolean(False, "read pages whole", tuning=_IN_PARTS)

    # Cluster, mirror, network and other protocols
    cluster_user: str = text("ACTIVEMQ.CLUSTER.ADMIN.USER", "user inside the cluster", ignored=SINGLE_NODE)
    cluster_password: str = text("CHANGE ME!!", "password inside the cluster", ignored=SINGLE_NODE)
    mirror_ack_manager_queue_attempts: int = int32(5, "attempts of a mirror", ignored=SINGLE_NODE)
    mirror_ack_manager_page_attempts: int = int32(2, "attempts of a mirror", ignored=SINGLE_NODE)
    mirror_ack_manager_retry_delay: int = int32(100, "delay of a mirror", unit="ms", ignored=SINGLE_NODE)
    mirror_ack_manager_warn_unacked: bool = boolean(False, "warnings of a mirror", ignored=SINGLE_NODE)
    mirror_page_transaction: bool = boolean(False, "pages in mirrors", ignored=SINGLE_NODE)
    network_check_list: str = text("", "hosts whose answer means a working network", ignored=SINGLE_NODE)
    network_check_url_list: str = text(
        "", "URLs whose answer means a working network", name="network-check-URL-list", ignored=SINGLE_NODE
    )
    network_check_period: int = int64(10000, "how often they are asked", unit="ms", ignored=SINGLE_NODE)
    network_check_timeout: int = int64(1000, "longest wait for an answer", unit="ms", ignored=SINGLE_NODE)
    network_check_nic: str = text("", "network card for it", name="network-check-NIC", ignored=SINGLE_NODE)
    network_check_ping_command: str = text("", "command for it", ignored=SINGLE_NODE)
    network_check_ping6_command: str = text("", "command for it", ignored=SINGLE_NODE)
    amqp_use_core_subscription_naming: bool = boolean(False, "names of subscriptions", ignored=NOT_SPOKEN)
    mqtt_session_scan_interval: int = int64(5000, "MQTT sessions", unit="ms", ignored=NOT_SPOKEN)
    mqtt_session_state_persistence_timeout: int = int64(5000, "MQTT sessions", unit="ms", ignored=NOT_SPOKEN)
    mqtt_subscription_persistence_enabled: bool = boolean(True, "MQTT subscriptions", ignored=NOT_SPOKEN)
