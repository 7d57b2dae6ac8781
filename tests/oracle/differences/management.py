"""Departures in management messages, notifications and the live reload."""

from __future__ import annotations

from typing import Final

from tests.oracle.differences.departure import Departure

RELOAD: Final = (
    Departure(
        "reload-broken",
        "Reload of a broken file",
        "elements unknown to the schema are logged and ignored",
        "nothing of the file is used ([reload.md](reload.md))",
        "half of an edit is worse than none",
        shown=False,
    ),
    Departure(
        "settings-at-reload",
        "Address-settings that `addAddressSettings` made, at a reload",
        "are forgotten until the next restart",
        "stay",
        "what was made to last should last",
        shown=False,
    ),
    Departure(
        "reload-included",
        "Reload when an included file changes",
        "not before broker.xml changes, too",
        "at once",
        "an edit should not wait for another",
        shown=False,
    ),
    Departure(
        "moved-in-the-file",
        "A queue with messages that the file declares on another address, or makes non-durable",
        "a warning; the queue is untouched",
        "the same, and `check`, `diff`, the log, `/health/ready` and metrics say how many messages keep it back, and "
        "what to do ([reload.md](reload.md#what-a-start-does-to-messages))",
        "nothing durable should go because a file was changed, and an operator should know",
        shown=False,
    ),
    Departure(
        "auto-created-after-a-restart",
        "Auto-created queues after a restart",
        "all that are empty go at once, whatever their delay",
        "those that their next use makes again go at once, others after two rounds; `auto-delete-queues-delay` begins "
        "with the start",
        "a restart should not take the queue of a client that comes back in time",
        shown=False,
    ),
    Departure(
        "address-without-a-queue",
        "An auto-created address that never had a queue",
        "stays until a restart, unless `auto-delete-addresses-skip-usage-check` is true",
        "goes after two rounds in which nobody has sent to it and `auto-delete-addresses-delay`, unless it retains "
        "messages (`retroactive-message-count`)",
        "a message that no queue takes should not leave an address for ever",
        shown=False,
    ),
    Departure(
        "late-reply",
        "A message to a temporary destination whose client has gone",
        "makes an address and a queue",
        "reaches nobody, and makes nothing (`ART-1012`)",
        "a late reply should leave nothing",
        shown=False,
    ),
    Departure(
        "reload-ring-size",
        "A `ring-size` set by an operator, at a reload",
        "is that of the file again",
        "stays until the file has another ring-size than before",
        "a restart keeps it, too",
        shown=False,
    ),
    Departure(
        "reload-max-consumers",
        "`max-consumers` below the number of consumers, at a reload",
        "is refused",
        "counts for new consumers",
        "the file says what should be",
        shown=False,
    ),
)

MANAGEMENT: Final = (
    Departure(
        "management-body",
        "A management message whose body is no JSON array, that has a `content-length`, or lacks a body",
        "is answered with ERROR, if an operation is asked for",
        "is carried out if it can be; a wrong body is answered with `_AMQ_OperationSucceeded:false` and the reason",
        "a client should learn what is wrong, and go on",
        shown=False,
    ),
    Departure(
        "management-resource",
        "A management message without `_AMQ_ResourceName`, or without an operation and an attribute",
        "the reply has a Java message, or says nothing",
        "the reply says what is missing",
        "a client should learn what is wrong",
        shown=False,
    ),
    Departure(
        "management-reply-to",
        "A `reply-to` where the sender may not send",
        "is found out when the operation is done",
        "ERROR, and nothing is done",
        "what cannot be answered should not be done",
        shown=False,
    ),
    Departure(
        "management-correlation",
        "A reply without a `correlation-id` in the request",
        "has `correlation-id:null`",
        "has none",
        "a header that says nothing is none",
        shown=False,
    ),
    Departure(
        "bean-send-message",
        "`sendMessage` of a bean, where no queue takes the message",
        "answers with a number",
        "is an error",
        "an answer that something was sent must be true",
        shown=False,
    ),
    Departure(
        "create-divert-taken",
        "`createDivert` with a name that is taken",
        "answers as if it was created, and changes nothing",
        "is an error that names the divert",
        "an answer that something was created must be true",
        shown=False,
    ),
    Departure(
        "create-divert-transformer",
        "`createDivert` with a transformer",
        "runs a Java class",
        "is an error",
        "a divert that forwards something else is no such divert",
        shown=False,
    ),
    Departure(
        "management-addresses",
        "SUBSCRIBE to `activemq.management`, SEND to `activemq.notifications`",
        "are possible",
        "are answered with ERROR",
        "nobody should wait for what never comes, or forge a notification",
        shown=False,
    ),
    Departure(
        "notifications-always",
        "`ADDRESS_ADDED`, `ADDRESS_REMOVED`, `CONNECTION_CREATED`, `CONNECTION_DESTROYED`, `MESSAGE_EXPIRED`",
        "come with a plugin",
        "always come; `MESSAGE_EXPIRED` once for the messages of a queue that expire together",
        "a selector chooses; a million messages that expire should not be a million notifications",
        shown=False,
    ),
    Departure(
        "notifications-delivered",
        "`MESSAGE_DELIVERED`",
        "comes with a plugin",
        "never comes",
        "it would cost more than the delivery",
        shown=False,
    ),
    Departure(
        "notifications-own",
        "Notifications of alerts, dead letters, dropped messages and blocked senders",
        "there are none",
        "have types of their own",
        "an addition",
        shown=False,
    ),
    Departure(
        "notifications-headers",
        "Headers of notifications",
        "also `_AMQ_ClusterName`, `_AMQ_CertSubjectDN` and `_AMQ_ValidatedUser`",
        "the others, and some more",
        "there is no cluster",
        shown=False,
    ),
    Departure(
        "notifications-durable",
        "Notifications are",
        "durable messages",
        "not durable, and at most 2,000 wait on a queue",
        "a listener that is gone should not fill the disk",
        shown=False,
    ),
)
