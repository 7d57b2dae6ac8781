"""The table of reasons: a word for each, what it means, the settings that lead to it, and what helps.

Answers, the operational log, metrics, commands and docs/why.md use these words. Words of the core are those of
``core/queue/why.py`` and ``core/addresses/full_policy.py``, and those for dead letters of their header ``reason``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.core.queue import why as core

NOT_DELIVERED: Final = "not-delivered"
BLOCKED: Final = "blocked"
DROPPED: Final = "dropped"
DEAD: Final = "dead"
SLOW: Final = "slow"
GROWING: Final = "growing"

QUESTIONS: Final = {
    NOT_DELIVERED: "Why does a queue deliver nothing (more)?",
    BLOCKED: "Why do senders wait?",
    DROPPED: "Why are messages gone that nobody consumed?",
    DEAD: "Why are messages dead letters?",
    SLOW: "Why is the broker slow?",
    GROWING: "Why does a queue grow?",
}
"""What can be asked, by the word of the command."""

KILLED: Final = {
    "dead": "dead",
    "cancelled": "sent_by_operator",
    "purged": "purged",
    "deleted": "deleted",
    "abandoned": "purge-on-no-consumers",
    "damaged": "damaged",
}
"""The word for why messages were killed, by the reason in ``core/order/entry.py``."""

OF_QUEUE: Final = "queue"
OF_ADDRESS: Final = "address"
OF_BROKER: Final = "broker"
"""Where a setting is written: on a queue (or as its default in an address-setting), in an address-setting, or beside
them.
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason. ``settings`` may lead to it, the first one as a rule; ``scope`` says where they are written."""

    code: str
    question: str
    meaning: str
    remedy: str
    settings: tuple[str, ...] = ()
    scope: str = OF_QUEUE


def rows(question: str, *rows: tuple[str, str, str, tuple[str, ...], str]) -> list[Cause]:
    """The causes of one question: word, meaning, remedy, settings and scope of each."""
    return [Cause(code, question, meaning, remedy, settings, scope) for code, meaning, remedy, settings, scope in rows]


# ---- why nothing is delivered --------------------------------------------------------------------


_DELIVERY_CAUSES: Final[list[Cause]] = rows(
    NOT_DELIVERED,
    (
        "bridge",
        "A bridge that forwards the queue is not connected.",
        "Look at artemis-py bridge ls: start the other broker or the bridge, or correct broker.xml.",
        (),
        OF_QUEUE,
    ),
    ("nothing-waits", "The queue has no message to deliver.", "Send to its address.", (), OF_QUEUE),
    (
        "disabled",
        "The queue is not enabled: nothing is routed to it.",
        "Enable it: artemis-py queue enable QUEUE, or enabled in broker.xml.",
        ("enabled",),
        OF_QUEUE,
    ),
    (
        "filtered",
        "No message of the address came to the queue, which has a filter.",
        "Change the filter of the queue, or the headers that senders set.",
        ("filter",),
        OF_QUEUE,
    ),
    (
        "diverted",
        "An exclusive divert takes the messages of the address.",
        "Change the divert's filter, set exclusive to false, or remove the divert.",
        (),
        OF_ADDRESS,
    ),
    (
        core.PAUSED,
        "The queue is paused.",
        "Resume it: artemis-py queue resume QUEUE.",
        (),
        OF_QUEUE,
    ),
    (
        core.STEP_FAILED,
        "A step of the queue failed, and the broker paused the queue.",
        "Look for ART-1005 in the log; artemis-py queue resume QUEUE, or a restart, tries again.",
        (),
        OF_QUEUE,
    ),
    (
        core.ADDRESS_PAUSED,
        "An operator has paused the address: no queue of it delivers.",
        "Resume it: artemis-py address resume ADDRESS.",
        (),
        OF_ADDRESS,
    ),
    (
        core.FEW_CONSUMERS,
        "The gate is closed until enough consumers are there.",
        "Start more consumers, or lower consumers-before-dispatch.",
        ("consumers-before-dispatch", "delay-before-dispatch"),
        OF_QUEUE,
    ),
    (
        core.MAX_BACKLOG,
        "As many messages as the queue allows are with consumers.",
        "Have consumers acknowledge, or raise max-backlog of the queue.",
        ("max-backlog",),
        OF_QUEUE,
    ),
    (
        core.MOVING,
        "Messages go back to their places, and nothing overtakes them.",
        "Wait: the broker continues by itself.",
        (),
        OF_QUEUE,
    ),
    (
        "filling",
        "The queue is being filled from the log, and messages keep their order.",
        "Wait until the queue is filled.",
        ("recovery-point",),
        OF_QUEUE,
    ),
    (
        core.NO_CONSUMER,
        "No consumer that takes messages is attached.",
        "Start the consumer, and look at its destination and its errors.",
        (),
        OF_QUEUE,
    ),
    (
        "kept",
        "No consumer is attached, and none is needed: a ring, or a queue that is only read, keeps its messages.",
        "Browse it, or subscribe, to read them.",
        (),
        OF_QUEUE,
    ),
    (
        "dead-letters",
        "Dead or expired messages come to the queue, and wait for an operator.",
        "See why they died: artemis-py why dead QUEUE. Repair it, then run artemis-py dead retry.",
        (),
        OF_QUEUE,
    ),
    (
        core.BACKLOG,
        "The consumer holds as many messages as it may.",
        "Have it acknowledge, or raise the limit in its SUBSCRIBE (max-backlog, prefetch-count) or on the queue.",
        ("max-per-subscription-backlog",),
        OF_QUEUE,
    ),
    (
        core.WINDOW,
        "The consumer's window is full of messages that it did not acknowledge.",
        "Have it acknowledge, or ask for a larger consumer-window-size in its SUBSCRIBE.",
        ("stompConsumerWindowSize",),
        OF_BROKER,
    ),
    (
        "not-reading",
        "The client does not read from its socket.",
        "Repair the client, or close its connection: artemis-py connection close NUMBER.",
        (),
        OF_QUEUE,
    ),
    (
        core.UNWANTED,
        "The consumer's selector, no-local or replay period excludes the messages.",
        "Change the selector, or start a consumer that takes these messages.",
        (),
        OF_QUEUE,
    ),
    (
        core.GROUPS,
        "The groups of the messages belong to other consumers.",
        "Have their owner acknowledge, or close its connection.",
        ("group-key", "group-buckets"),
        OF_QUEUE,
    ),
    (
        core.GROUP_WAITS,
        "A message of the group waits for another attempt, and the others stay behind it.",
        "Wait for the redelivery delay, or shorten it.",
        ("redelivery-delay",),
        OF_ADDRESS,
    ),
    (
        "rebalance",
        "Groups are reassigned: nothing is delivered until what was sent before is settled.",
        "Have consumers acknowledge what they hold.",
        ("group-rebalance-pause-dispatch",),
        OF_QUEUE,
    ),
    (
        core.EXCLUSIVE,
        "Only so many consumers are served at once, and this one is in reserve.",
        "Close one that is served, or change exclusive or max-live-consumers.",
        ("exclusive", "max-live-consumers"),
        OF_QUEUE,
    ),
    (
        core.PRIORITY,
        "Consumers of a higher priority take the messages first.",
        "Give them the same consumer-priority in SUBSCRIBE, if they are to take turns.",
        (),
        OF_QUEUE,
    ),
    (
        core.SHOWN,
        "The queue is non-destructive, and the consumer was shown the messages before.",
        "To see them again, the consumer subscribes again.",
        ("non-destructive",),
        OF_QUEUE,
    ),
    (
        "more-consumers",
        "Further consumers have room. Which messages they take was not checked.",
        "Ask about one message: artemis-py why not-delivered QUEUE --message NUMBER.",
        (),
        OF_QUEUE,
    ),
    (core.DUE, "Nothing holds it back: it goes out now.", "Ask again.", (), OF_QUEUE),
    (
        core.HELD,
        "A consumer has the messages and did not acknowledge.",
        "Look at that consumer, or close its connection: its messages go to others.",
        (),
        OF_QUEUE,
    ),
    (
        core.LEASED,
        "The messages are leased to consumers.",
        "Wait for the lease to end, or have its holder acknowledge.",
        ("lease-period",),
        OF_QUEUE,
    ),
    (
        "scheduled",
        "The messages wait for the time that their senders have set.",
        "Wait, or send without a delay.",
        (),
        OF_QUEUE,
    ),
    (
        "redelivery-delay",
        "A delivery failed, and the next attempt must wait.",
        "Repair the consumer; a shorter redelivery-delay tries again sooner.",
        ("redelivery-delay", "redelivery-delay-multiplier", "max-redelivery-delay"),
        OF_ADDRESS,
    ),
    (
        core.BARRIER,
        "The messages are behind a barrier.",
        "Have consumers acknowledge what is before the barrier.",
        ("barrier-expression",),
        OF_QUEUE,
    ),
    (
        core.TARGET_DEPTH,
        "As many messages are active as the queue allows.",
        "Have consumers acknowledge what is active, or raise target-queue-depth.",
        ("target-queue-depth",),
        OF_QUEUE,
    ),
    (
        "page",
        "The messages are in pages, which are being read.",
        "Wait: the disk, or the next turn, brings them.",
        (),
        OF_ADDRESS,
    ),
    (
        core.READ_AHEAD,
        "As many paged messages are in memory as the limits allow.",
        "Have consumers acknowledge what is in memory, or raise the setting.",
        (
            "max-read-page-bytes",
            "max-read-page-messages",
            "prefetch-page-bytes",
            "prefetch-page-messages",
            "max-size-bytes",
            "page-size-bytes",
            "ring-size",
            "max-depth-messages",
            "max-depth-bytes",
        ),
        OF_QUEUE,
    ),
    (
        "sync",
        "What was recorded is not on the disk yet, and nothing leaves before that.",
        "Wait; artemis-py why slow shows how long the disk takes.",
        ("journal-sync-transactional",),
        OF_BROKER,
    ),
    ("behind", "Other messages are before it.", "Wait for them.", (), OF_QUEUE),
    (
        "not-there",
        "The queue does not have this message.",
        "artemis-py trace finds what became of it.",
        (),
        OF_QUEUE,
    ),
    (
        "in-pages",
        "The message may be in pages that were not read yet.",
        "Wait, or use artemis-py trace.",
        ("max-size-bytes",),
        OF_ADDRESS,
    ),
)


CAUSES: Final[dict[str, Cause]] = {
    cause.code: cause
    for cause in (
        *_DELIVERY_CAUSES,
        *rows(
            BLOCKED,
            (
                "not-blocked",
                "Nothing holds senders back.",
                "If a sender still waits, ask about its connection.",
                (),
                OF_ADDRESS,
            ),
            (
                "address-blocked",
                "An operator has blocked the address.",
                "Let senders go on: artemis-py address unblock ADDRESS. A restart does so, too.",
                (),
                OF_ADDRESS,
            ),
            (
                "max-size",
                "The address has as much in memory as it may.",
                "Let consumers take messages, raise max-size-bytes, or let the address page (address-full-policy).",
                ("max-size-bytes",),
                OF_ADDRESS,
            ),
            (
                "max-messages",
                "The address has as many messages in memory as it may.",
                "Let consumers take messages, raise max-size-messages, or let the address page (address-full-policy).",
                ("max-size-messages",),
                OF_ADDRESS,
            ),
            (
                "global-max-size",
                "All addresses together have as much in memory as they may.",
                "Let consumers take messages anywhere, or raise global-max-size.",
                ("global-max-size",),
                OF_BROKER,
            ),
            (
                "global-max-messages",
                "All addresses together have as many messages in memory as they may.",
                "Let consumers take messages anywhere, or raise global-max-messages.",
                ("global-max-messages",),
                OF_BROKER,
            ),
            (
                "held-memory",
                "Clients make the broker hold as much memory as they may.",
                "Consume messages and close what is not used, or raise global-max-held-size.",
                ("global-max-held-size",),
                OF_BROKER,
            ),
            (
                "disk-full",
                "A disk of the broker is full.",
                "Free room on the disk, consume messages, or shorten the retained log.",
                ("max-disk-usage", "min-disk-free"),
                OF_BROKER,
            ),
            (
                "page-limit-messages",
                "The pages of the address have as many messages as they may.",
                "Let consumers take messages, or raise page-limit-messages.",
                ("page-limit-messages",),
                OF_ADDRESS,
            ),
            (
                "page-limit-bytes",
                "The address has as many pages as it may.",
                "Let consumers take messages, or raise page-limit-bytes.",
                ("page-limit-bytes",),
                OF_ADDRESS,
            ),
            (
                "pages-behind",
                "Pages come faster than the disk takes them.",
                "Use a faster disk for paging-directory, or fewer senders at once.",
                ("paging-directory",),
                OF_BROKER,
            ),
            (
                "queue-depth",
                "A queue of the address is at its maximum depth.",
                "Let its consumers take messages, or raise max-depth-messages or max-depth-bytes.",
                ("max-depth-messages", "max-depth-bytes"),
                OF_QUEUE,
            ),
            (
                "spreading",
                "An earlier message is still being put on very many queues.",
                "Wait: the broker continues by itself.",
                (),
                OF_ADDRESS,
            ),
            (
                "disk-slow",
                "The body of a large message is written to the disk.",
                "Wait; use a faster disk.",
                ("large-messages-directory",),
                OF_BROKER,
            ),
            (
                "work",
                "The broker is still working on an earlier frame of the connection.",
                "Wait: the broker continues by itself.",
                (),
                OF_BROKER,
            ),
            (
                "login",
                "The login is not decided yet.",
                "Look at the directory or file of users that decides it.",
                (),
                OF_BROKER,
            ),
        ),
        *rows(
            DROPPED,
            (
                "nothing-dropped",
                "No message was lost here since the start.",
                "Look at another address or queue.",
                (),
                OF_ADDRESS,
            ),
            (
                "others",
                "Further queues lost messages, fewer than those that are listed.",
                "Ask about one of them: artemis-py why dropped QUEUE.",
                (),
                OF_ADDRESS,
            ),
            (
                "policy-drop",
                "The address was full, and its policy drops messages without telling senders.",
                "Let consumers catch up, or choose BLOCK, FAIL or PAGE.",
                ("address-full-policy", "disk-full-policy", "page-full-policy"),
                OF_ADDRESS,
            ),
            (
                "unrouted",
                "No queue took the messages, of the address or where an exclusive divert sends them.",
                "Declare a queue, or keep such messages with send-to-dla-on-no-route.",
                ("send-to-dla-on-no-route",),
                OF_ADDRESS,
            ),
            (
                "duplicate",
                "The address had seen their duplicate ids.",
                "Nothing has to be done, unless senders use an id for different messages.",
                ("id-cache-size",),
                OF_ADDRESS,
            ),
            (
                "ring",
                "The queue is a ring, and newer messages replaced them.",
                "Let consumers keep up, or raise ring-size.",
                ("ring-size", "overflow-policy"),
                OF_QUEUE,
            ),
            (
                "last-value",
                "A newer value of the same key replaced them.",
                "That is as configured: last-value, last-value-key.",
                ("last-value-key", "last-value"),
                OF_QUEUE,
            ),
            (
                "expired",
                "They were not consumed in time.",
                "Consume faster, or let messages live longer; expiry-address keeps them.",
                ("expiry-address", "expiry-delay", "max-expiry-delay"),
                OF_ADDRESS,
            ),
            (
                "no-match",
                "They did not pass the queue's filter.",
                "Change the filter of the queue if they should have.",
                ("filter",),
                OF_QUEUE,
            ),
            (
                "purge-on-no-consumers",
                "The queue loses its messages with its last consumer.",
                "Keep a consumer attached, or set purge-on-no-consumers to false.",
                ("purge-on-no-consumers",),
                OF_QUEUE,
            ),
            (
                "dead",
                "Deliveries failed, or consumers refused messages, as often as they may.",
                "artemis-py why dead, of the queue with the dead letters, says which. Repair the consumer.",
                ("max-delivery-attempts", "max-deliveries", "max-cancels"),
                OF_QUEUE,
            ),
            ("purged", "An operator has emptied the queue.", "The audit log (AUD-1001) says who.", (), OF_QUEUE),
            (
                "deleted",
                "The queue was deleted.",
                "The audit log (AUD-1001) says who; unused queues are deleted by auto-delete.",
                ("auto-delete-queues",),
                OF_ADDRESS,
            ),
            (
                "damaged",
                "Their record could not be read.",
                "The log of the start says which file; check the disk.",
                (),
                OF_QUEUE,
            ),
        ),
        *rows(
            DEAD,
            ("no-dead-letters", "No message of the queue is dead.", "Look at another queue.", (), OF_ADDRESS),
            (
                "max_deliveries",
                "Deliveries failed as often as they may.",
                "Repair the consumer, then send them again; more attempts: max-delivery-attempts.",
                ("max-delivery-attempts", "max-deliveries"),
                OF_QUEUE,
            ),
            (
                "max_cancels",
                "Consumers refused the message as often as they may.",
                "Repair what consumers refuse, then send it again.",
                ("max-cancels",),
                OF_QUEUE,
            ),
            (
                "no_route",
                "No queue took the message.",
                "Declare a queue for its address.",
                ("send-to-dla-on-no-route",),
                OF_ADDRESS,
            ),
            (
                "time_limit",
                "The message expired.",
                "Consume faster, or let messages live longer.",
                ("expiry-address", "expiry-delay"),
                OF_ADDRESS,
            ),
            (
                "forced_expire",
                "A consumer or an operator had the message expire.",
                "Look at that consumer; the audit log (AUD-1001) names operators.",
                (),
                OF_ADDRESS,
            ),
            (
                "sent_by_operator",
                "An operator sent the message to the dead letters.",
                "The audit log (AUD-1001) says who; artemis-py dead retry --origin QUEUE sends it back.",
                (),
                OF_ADDRESS,
            ),
            (
                "bridge_loop",
                "The message came back to a bridge that had forwarded it: bridges form a loop.",
                "Remove a bridge of the loop, or its forwarding-address that leads back.",
                (),
                OF_QUEUE,
            ),
            (
                "no-dead-letter-address",
                "Dead messages are discarded: no queue keeps them.",
                "Set dead-letter-address, and declare a queue there.",
                ("dead-letter-address",),
                OF_ADDRESS,
            ),
            (
                "unknown",
                "No header says why it died.",
                "The retained log may tell: artemis-py trace NUMBER.",
                (),
                OF_ADDRESS,
            ),
        ),
        *rows(
            SLOW,
            ("nothing-slow", "Nothing of the broker is slow.", "Look at clients and the network.", (), OF_BROKER),
            (
                "turns",
                "Turns of the broker are long, and all clients wait meanwhile.",
                "Give the broker a processor of its own; look for queues with very many consumers or costly selectors.",
                (),
                OF_BROKER,
            ),
            (
                "syncs",
                "The disk takes long to make messages durable; every receipt waits for that.",
                "Find who else writes to this disk, or move journal-directory to a faster one.",
                ("journal-directory",),
                OF_BROKER,
            ),
            (
                "slow-consumers",
                "Consumers take nothing although messages wait.",
                "Repair them; slow-consumer-policy KILL closes those that stay slow.",
                ("slow-consumer-threshold", "slow-consumer-policy"),
                OF_ADDRESS,
            ),
            ("senders-wait", "Senders wait for room.", "artemis-py why blocked ADDRESS says why.", (), OF_BROKER),
            (
                "disk",
                "A disk is full, or nearly.",
                "Free room on the disk.",
                ("max-disk-usage", "min-disk-free"),
                OF_BROKER,
            ),
            (
                "memory",
                "Clients make the broker hold nearly as much memory as they may.",
                "Consume messages and close what is not used, or raise global-max-held-size.",
                ("global-max-held-size",),
                OF_BROKER,
            ),
            (
                "readers-wait",
                "The broker is busy, so work that can wait, such as log downloads, waits.",
                "Read the log when the broker has less to do.",
                (),
                OF_BROKER,
            ),
            (
                "paging",
                "Addresses have messages in pages, which is slower than memory.",
                "Let consumers catch up, or give the address more memory.",
                ("max-size-bytes",),
                OF_ADDRESS,
            ),
        ),
        *rows(
            GROWING,
            ("not-growing", "The queue does not grow.", "Nothing has to be done.", (), OF_QUEUE),
            (
                "faster-in",
                "More comes in than consumers acknowledge.",
                "Add consumers, or let each handle more.",
                (),
                OF_QUEUE,
            ),
            (
                "no-acknowledgements",
                "Messages come in, and none is acknowledged.",
                "artemis-py why not-delivered QUEUE says why.",
                (),
                OF_QUEUE,
            ),
            ("consumer-rate", "What one consumer acknowledges.", "", (), OF_QUEUE),
            (
                "will-page",
                "At this rate the address pages.",
                "Let consumers catch up, or raise max-size-bytes.",
                ("max-size-bytes",),
                OF_ADDRESS,
            ),
            (
                "will-be-full",
                "At this rate the limit is reached.",
                "Let consumers catch up, or raise the limit.",
                ("max-size-bytes",),
                OF_ADDRESS,
            ),
            ("will-drain", "At this rate the queue is empty soon.", "Nothing has to be done.", (), OF_QUEUE),
        ),
    )
}
