"""The elements with a structure: what each is for and how far it is honoured.

Together with the tables of plain settings this gives every element and attribute of the XSD exactly one row. A path
begins below ``core``; a part that is ``whole`` stands for everything inside it too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.config.tables.fields import (
    HONOURED,
    IGNORED,
    JAVA,
    SINGLE_NODE,
)


class Part(NamedTuple):
    """One row: see the module's text.

    ``silent``: present or not makes no difference, so no notice is needed; ``only_with`` names the child without which
    the same is true.
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
    Part("address-settings/address-setting", "settings for every address that its match applies to"),
    Part("address-settings/address-setting/@match", "the addresses meant; `*` is one word, `#` at the end any number"),
    Part("addresses", "the addresses that exist from the start"),
    Part("addresses/address", "an address, its routing types and queues"),
    Part("addresses/address/@name", "its name"),
    Part("addresses/address/anycast", "each message goes to one of the queues inside"),
    Part("addresses/address/multicast", "each message goes to all queues inside, and to subscriptions"),
    Part("queues", "old way to declare queues: each is multicast; write `addresses` instead"),
    Part("queues/queue/address", "the address of such a queue; by default its name"),
    *(Part(f"{parent}/queue", "a queue") for parent in _QUEUE_PARENTS),
    *(Part(f"{parent}/queue/@name", "its name; unique in the whole broker") for parent in _QUEUE_PARENTS),
    *(Part(f"{parent}/queue/filter/@string", "the selector") for parent in _QUEUE_PARENTS),
    Part("diverts", "copies and detours from one address to others"),
    Part("diverts/divert", "a divert"),
    Part("diverts/divert/@name", "its name; unique"),
    Part("diverts/divert/filter/@string", "the selector"),
    Part("wildcard-addresses", "the characters of wildcards"),
    Part("wildcard-addresses/routing-enabled", "a queue on a wildcard address gets what is sent to matching addresses"),
    Part("wildcard-addresses/enabled", "old name of routing-enabled"),
    Part("wildcard-addresses/delimiter", "the character between words; by default `.`"),
    Part("wildcard-addresses/any-words", "the character for any number of words; by default `#`"),
    Part("wildcard-addresses/single-word", "the character for one word; by default `*`"),
    Part("journal-retention-directory", "where closed journal files are kept; needs a limit in time or in bytes"),
    Part(
        "journal-retention-directory/@unit",
        "of `period` and `cursor-ttl`: DAYS (by default), HOURS, MINUTES, SECONDS",
    ),
    Part("journal-retention-directory/@period", "how long they are kept, from their last record on"),
    Part("journal-retention-directory/@storage-limit", "how many bytes of them are kept, the newest"),
    Part(
        "journal-retention-directory/@cursor-ttl",
        "how long a cursor that is not moved and says nothing else holds them back; by default one day (our addition)",
    ),
    Part("acceptors", "the ports that the broker listens on"),
    Part("acceptors/acceptor", "a port: `tcp://host:port?parameter=value;…`; see the table of parameters"),
    Part("acceptors/acceptor/@name", "its name, for messages and metrics; by default `tcp://host:port`"),
    Part("resource-limit-settings", "limits for users, by the login that a client gives; no password is checked yet"),
    Part(_LIMITS_OF_USER, "limits for one user"),
    Part(f"{_LIMITS_OF_USER}/@match", "the login; `*` for each that has no limits of its own (our addition)"),
    Part(f"{_LIMITS_OF_USER}/max-connections", "most connections at once; by default -1: any number"),
    Part(f"{_LIMITS_OF_USER}/max-queues", "most queues that the user brought into being; by default -1: any number"),
    Part("security-settings", "permissions, by match; read and explained, not enforced by this version"),
    Part("security-settings/security-setting", "permissions for the addresses that its match applies to"),
    Part("security-settings/security-setting/@match", "the addresses meant"),
    Part("security-settings/security-setting/permission", "one permission"),
    Part("security-settings/security-setting/permission/@type", "which: send, consume, browse, …"),
    Part("security-settings/security-setting/permission/@roles", "the roles that have it, with commas between"),
    Part("security-settings/role-mapping", "makes roles of a directory count as roles used here"),
    Part("security-settings/role-mapping/@from", "the role outside"),
    Part("security-settings/role-mapping/@to", "the roles it counts as, with commas between"),
)

_TRANSFORMER: Final = "Java classes cannot run here; the messages are forwarded unchanged"
_NO_DATABASE: Final = "the journal is in files"
_METRICS: Final = "which metrics are exported is fixed in this version"

_WITHOUT: Final = (
    _ignored("diverts/divert/transformer", "a class that changes forwarded messages", _TRANSFORMER),
    _ignored("diverts/divert/transformer-class-name", "the same, as it was written before", _TRANSFORMER),
    _ignored("security-settings/security-setting-plugin", "a class that knows the permissions", JAVA),
    _ignored(
        f"{_LIMITS_OF_USER}/max-sessions",
        "read by Artemis' schema only",
        "Artemis does not look at it; write max-connections",
    ),
    _ignored("store", "journal in files or in a database", _NO_DATABASE, only_with="database-store"),
    _ignored("connectors", "ways to other brokers", SINGLE_NODE, silent=True),
    _ignored("remoting-incoming-interceptors", "classes that see what comes in", JAVA),
    _ignored("remoting-outgoing-interceptors", "classes that see what goes out", JAVA),
    _ignored("broker-plugins", "classes that the broker calls", JAVA),
    _ignored("connector-services", "classes that connect to other systems", JAVA),
    _ignored("metrics", "which metrics are exported", _METRICS),
    _ignored("metrics-plugin", "the same, as it was written before", _METRICS),
    _ignored("broadcast-groups", "how a broker makes itself known", SINGLE_NODE),
    _ignored("discovery-groups", "how brokers are found", SINGLE_NODE),
    _ignored("cluster-connections", "brokers that work together", SINGLE_NODE),
    _ignored("grouping-handler", "message groups in a cluster", SINGLE_NODE),
    _ignored("bridges", "forwarding to other brokers", "this version has no bridges"),
    _ignored("connection-routers", "sending clients on to other brokers", SINGLE_NODE),
    _ignored("ha-policy", "pairs of brokers; this one starts as a broker of its own", SINGLE_NODE),
    _ignored("federations", "addresses and queues shared with other brokers", "this version has no federation"),
    _ignored("broker-connections", "connections to other brokers by AMQP", "this broker does not speak AMQP"),
)

PARTS: Final = {part.path: part for part in (*_HONOURED, *_WITHOUT)}
