"""The structured elements: what each is for and how far it is honoured.

With the tables of plain settings, every element and attribute of the XSD has exactly one row. A path begins below
``core``; a part that is ``whole`` includes everything inside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from artemis_py.config.tables.declarations import BACKUP_ELEMENTS, POLICY_ROLES, PRIMARY_ELEMENTS, SharedStoreConfig
from artemis_py.config.tables.fields import (
    HONOURED,
    IGNORED,
    JAVA,
    NO_EFFECT,
    REFUSED,
    SINGLE_NODE,
    names_of,
)


class Part(NamedTuple):
    """One row: see the module docstring.

    ``silent``: the part's presence makes no difference, so it needs no notice. ``only_with``: the same holds unless
    this child is present.
    """

    path: str
    meaning: str
    treatment: str = HONOURED
    reason: str = ""
    whole: bool = False
    silent: bool = False
    only_with: str = ""


def _ignored(path: str, meaning: str, reason: str, *, silent: bool = False, only_with: str = "") -> Part:
    return Part(path, meaning, IGNORED, reason, whole=True, silent=silent, only_with=only_with)


_LIMITS_OF_USER: Final = "resource-limit-settings/resource-limit-setting"
_QUEUE_PARENTS: Final = ("addresses/address/anycast", "addresses/address/multicast", "queues")

_HONOURED: Final = (
    Part("address-settings", "settings for addresses, by match"),
    Part("address-settings/address-setting", "settings for every address that the match covers"),
    Part(
        "address-settings/address-setting/@match",
        ("the addresses; `*` stands for one word, `#` at the end for any number"),
    ),
    Part("addresses", "the addresses that exist from the start"),
    Part("addresses/address", "an address, its routing types and queues"),
    Part("addresses/address/@name", "its name"),
    Part("addresses/address/anycast", "each message goes to one of the queues inside"),
    Part("addresses/address/multicast", "each message goes to all queues inside, and to subscriptions"),
    Part("queues", "deprecated way to declare queues, all multicast; use `addresses`"),
    Part("queues/queue/address", "the queue's address (default: its name)"),
    *(Part(f"{parent}/queue", "a queue") for parent in _QUEUE_PARENTS),
    *(Part(f"{parent}/queue/@name", "its name; unique in the whole broker") for parent in _QUEUE_PARENTS),
    *(Part(f"{parent}/queue/filter/@string", "the selector") for parent in _QUEUE_PARENTS),
    Part("diverts", "copy or redirect messages from one address to others"),
    Part("diverts/divert", "a divert"),
    Part("diverts/divert/@name", "its name; unique"),
    Part("diverts/divert/filter/@string", "the selector"),
    Part("connectors", "other brokers, for bridges; those that no bridge names have no effect"),
    Part("connectors/connector", "a broker: `tcp://host:port?parameter=value;…`; see the parameters of connectors"),
    Part("connectors/connector/@name", "its name, by which bridges refer to it"),
    Part("bridges", "forward queues to other brokers, over STOMP; see bridges.md"),
    Part("bridges/bridge", "a bridge"),
    Part("bridges/bridge/@name", "its name; unique"),
    Part("bridges/bridge/filter/@string", "the selector"),
    Part("bridges/bridge/static-connectors", "the other broker; with several, the first that can be reached"),
    Part("bridges/bridge/static-connectors/connector-ref", "the name of a connector"),
    Part("wildcard-addresses", "the wildcard characters"),
    Part(
        "wildcard-addresses/routing-enabled", ("a queue on a wildcard address gets messages sent to matching addresses")
    ),
    Part("wildcard-addresses/enabled", "old name of routing-enabled"),
    Part("wildcard-addresses/delimiter", "the character between words (default `.`)"),
    Part("wildcard-addresses/any-words", "that for any number of words (default `#`)"),
    Part("wildcard-addresses/single-word", "that for one word (default `*`)"),
    Part("journal-retention-directory", "where closed journal files are kept; needs a limit in time or in bytes"),
    Part(
        "journal-retention-directory/@unit",
        "unit of `period` and `cursor-ttl`: DAYS (default), HOURS, MINUTES, SECONDS",
    ),
    Part("journal-retention-directory/@period", "how long they are kept after their last record"),
    Part("journal-retention-directory/@storage-limit", "how many bytes of the newest files are kept"),
    Part(
        "journal-retention-directory/@cursor-ttl",
        "how long a cursor without a time of its own keeps them while it is not moved (default: one day; our addition)",
    ),
    Part("acceptors", "the ports that the broker listens on"),
    Part("acceptors/acceptor", "a port: `tcp://host:port?parameter=value;…`; see its parameters"),
    Part("acceptors/acceptor/@name", "its name in messages and metrics (default: `tcp://host:port`)"),
    Part(
        "acceptors/acceptor/@lock-coordinator",
        "opens the port only while this broker holds a lock that several brokers share",
        IGNORED,
        "this broker is a single node and opens the port at once",
    ),
    Part(
        "resource-limit-settings",
        "limits for users; without security, by the login that a client gives",
    ),
    Part(_LIMITS_OF_USER, "limits for one user"),
    Part(f"{_LIMITS_OF_USER}/@match", "the login; `*` for every login without limits of its own (our addition)"),
    Part(f"{_LIMITS_OF_USER}/max-connections", "maximum connections (default -1: no limit)"),
    Part(f"{_LIMITS_OF_USER}/max-queues", "maximum queues created by the user (default -1: no limit)"),
    Part("authentication", "where users come from (our addition)"),
    Part("authentication/@login-config", "a login.config of Artemis, relative to this file"),
    Part("authentication/@domain", "its domain for clients without a certificate (default: activemq)"),
    Part("authentication/@certificate-domain", "its domain for clients with a certificate (default: the other one)"),
    Part("authentication/authenticator", "a way to log in; the first that knows the client decides"),
    Part("authentication/authenticator/@name", "its name, such as jwt or ldap"),
    Part("authentication/authenticator/option", "one of its options"),
    Part("authentication/authenticator/option/@name", "the name"),
    Part("authentication/authenticator/option/@value", "the value; `ENC(…)` is unmasked"),
    Part("authentication/authenticator/option/@file", "instead: a file whose first line is the value"),
    Part(
        "users-file",
        "the file of users and passwords, relative to this file (default: `artemis-users.properties`; our addition)",
    ),
    Part("users-file/@roles-file", "the file of their roles (default: `artemis-roles.properties` beside it)"),
    Part("users-file/@first-user", "a user that is made at a start without the file (default: none)"),
    Part("users-file/@first-role", "the role of the first user (default `amq`)"),
    Part("security-settings", "permissions, by match; only the most specific one decides; see security.md"),
    Part("security-settings/security-setting", "permissions for the addresses that the match covers"),
    Part("security-settings/security-setting/@match", "the addresses"),
    Part("security-settings/security-setting/permission", "one permission"),
    Part("security-settings/security-setting/permission/@type", "its type: send, consume, browse, …; see security.md"),
    Part("security-settings/security-setting/permission/@roles", "the roles that have it, separated by commas"),
    Part("security-settings/role-mapping", "maps roles of a directory to roles used here"),
    Part("security-settings/role-mapping/@from", "the directory's role"),
    Part("security-settings/role-mapping/@to", "the roles it maps to, separated by commas"),
)

_TRANSFORMER: Final = "Java classes cannot run here; messages are forwarded unchanged"
_NO_DATABASE: Final = "the journal is stored in files"
_NO_COPY: Final = "two brokers can be a pair only by shared-store with a primary and a backup"
_METRICS: Final = "which metrics are exported is fixed in this version"

_WITHOUT: Final = (
    _ignored("diverts/divert/transformer", "a class that changes forwarded messages", _TRANSFORMER),
    _ignored("diverts/divert/transformer-class-name", "the same, in its old form", _TRANSFORMER),
    _ignored("security-settings/security-setting-plugin", "a class that decides about permissions", JAVA),
    _ignored(
        f"{_LIMITS_OF_USER}/max-sessions",
        "only in Artemis' schema",
        "Artemis ignores it; write max-connections",
    ),
    _ignored("store", "journal in files or in a database", _NO_DATABASE, only_with="database-store"),
    _ignored("connectors/connector/@lock-coordinator", "only in Artemis' schema", NO_EFFECT, silent=True),
    _ignored("remoting-incoming-interceptors", "classes that intercept incoming packets", JAVA),
    _ignored("remoting-outgoing-interceptors", "classes that intercept outgoing packets", JAVA),
    _ignored("broker-plugins", "classes that the broker calls", JAVA),
    _ignored("connector-services", "classes that connect to other systems", JAVA),
    _ignored("metrics", "which metrics are exported", _METRICS),
    _ignored("metrics-plugin", "the same, in its old form", _METRICS),
    _ignored("broadcast-groups", "how a broker announces itself", SINGLE_NODE),
    _ignored("discovery-groups", "how brokers are discovered", SINGLE_NODE),
    _ignored("cluster-connections", "brokers that form a cluster", SINGLE_NODE),
    _ignored("grouping-handler", "message groups in a cluster", SINGLE_NODE),
    _ignored("bridges/bridge/transformer", "a class that changes forwarded messages", _TRANSFORMER),
    _ignored(
        "bridges/bridge/static-connectors/@allow-direct-connections-only",
        "use no other brokers of a cluster",
        SINGLE_NODE,
        silent=True,
    ),
    Part(
        "bridges/bridge/discovery-group-ref",
        "other brokers, as they announce themselves",
        REFUSED,
        "this broker hears no announcements; name the other broker with static-connectors",
        whole=True,
    ),
    _ignored("lock-coordinators", "locks that several brokers share", SINGLE_NODE),
    _ignored("connection-routers", "redirecting clients to other brokers", SINGLE_NODE),
    *(
        _ignored(f"ha-policy/{name}", "a broker that is not a pair", SINGLE_NODE)
        for name in ("primary-only", "live-only")
    ),
    _ignored("ha-policy/replication", "a pair that copies its journal; this broker starts standalone", _NO_COPY),
    _ignored("ha-policy/shared-store/colocated", "two pairs in two processes; this broker starts standalone", _NO_COPY),
    _ignored("federations", "addresses and queues shared with other brokers", "this version has no federation"),
    _ignored("broker-connections", "connections to other brokers by AMQP", "this broker does not support AMQP"),
)


def _shared_store() -> Iterator[Part]:
    """The rows of ``ha-policy/shared-store``."""
    rows = names_of(SharedStoreConfig)
    yield Part("ha-policy", "two brokers that stand in for each other")
    yield Part("ha-policy/shared-store", "two brokers on one data directory: one works, the other waits for its lock")
    for role, is_backup in POLICY_ROLES.items():
        path = f"ha-policy/shared-store/{role}"
        told = "takes over when the primary dies" if is_backup else "works whenever the lock is free"
        yield Part(path, f"this broker {told}{'' if role in ('primary', 'backup') else ' (old name)'}")
        for name in BACKUP_ELEMENTS if is_backup else PRIMARY_ELEMENTS:
            row = rows[name]
            yield Part(f"{path}/{name}", f"{row.meaning} (default {row.default_text})", row.treatment, row.reason)
        if is_backup:
            yield _ignored(f"{path}/scale-down", "giving its messages to another broker", SINGLE_NODE)


PARTS: Final = {part.path: part for part in (*_HONOURED, *_shared_store(), *_WITHOUT)}
