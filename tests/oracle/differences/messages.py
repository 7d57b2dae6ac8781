"""Departures in queues, acknowledgements and addresses."""

from __future__ import annotations

from typing import Final

from tests.oracle.differences.departure import Departure

QUEUES: Final = (
    Departure(
        "ring-least",
        "A full ring and priorities",
        "gives up the message that would be delivered next: the oldest of the *highest* priority, even one just sent",
        "gives up the oldest message of the *lowest* priority",
        "a ring should lose what matters least",
    ),
    Departure(
        "ring-return-order",
        "Messages that come back to a full ring",
        "gives up those that their last consumer was sent first, whatever their age",
        "puts each back in its own place, then gives up the oldest of the lowest priority until the ring fits",
        "what is lost should not depend on who held it",
    ),
    Departure(
        "ring-consumer-first",
        "A burst larger than the ring, and a consumer with room",
        "may give messages up before it looks at the consumer; how many depends on its threads",
        "gives the consumer what it has room for; the ring counts the rest (a `ring-size` of 0 keeps nothing in both)",
        "one rule that does not depend on timing, and nothing is lost that somebody waits for",
    ),
    Departure(
        "ring-default-size",
        "`default-ring-size` and queues declared in broker.xml",
        "holds for auto-created queues only: a queue declared without `ring-size` has none",
        "holds for both",
        "Artemis' own manual says so",
    ),
    Departure(
        "non-destructive-count",
        "Message count of a non-destructive queue",
        "counts a message twice while a consumer reads it",
        "counts it once",
        "the number of messages does not change by reading them",
    ),
    Departure(
        "exclusive-selector",
        "An exclusive queue whose first consumer's selector does not match",
        "gives the message to another consumer, who then owns the queue",
        "keeps the message for the first consumer, or for the next when it leaves",
        "the first consumer has the queue to itself",
    ),
    Departure(
        "delay-before-dispatch-event",
        "`delay-before-dispatch`",
        "when the delay is over, dispatch starts with the next event on the queue, such as another message",
        "dispatch starts when the delay is over",
        "otherwise messages wait for ever on a quiet queue",
    ),
    Departure(
        "auto-window",
        "`consumer-window-size` with `ack:auto`",
        "never gives the window back: the subscription stops for good when it is used up",
        "a window has no effect, since nothing waits for acknowledgement",
        "a subscription must not stall",
    ),
    Departure(
        "browser",
        "`browser:true` on SUBSCRIBE",
        "has no such header; the messages are consumed",
        "the subscription reads the queue and takes nothing",
        "an addition",
    ),
    Departure(
        "consumer-priority",
        "`consumer-priority` on SUBSCRIBE",
        "has consumer priorities, but no header for them in STOMP",
        "the header sets it: higher ones are served first",
        "an addition",
    ),
)

ATTEMPTS: Final = (
    Departure(
        "nack",
        "NACK",
        "is an ACK: the message is gone, and counted as acknowledged",
        "gives the message back to its place; it counts as a delivery attempt, with `redelivery-delay`, "
        "`max-delivery-attempts` and dead letters",
        "the STOMP specification: the client did not consume the message",
    ),
    Departure(
        "nack-of-10",
        "NACK in STOMP 1.0",
        "closes the connection, the ERROR without `receipt-id`",
        "ERROR, and the connection goes on",
        "in 1.0 an ERROR need not end the connection",
    ),
    Departure(
        "ack-in-transaction",
        "ACK and NACK with a `transaction` header",
        "take effect at once; ABORT does not undo them, and an unknown transaction is not noticed",
        "take effect at COMMIT; after ABORT the messages are back in their places; an unknown transaction is an ERROR",
        "the STOMP specification",
    ),
    Departure(
        "redelivered-flag",
        "`redelivered` after UNSUBSCRIBE and DISCONNECT",
        "false after UNSUBSCRIBE; after DISCONNECT true for the first message of each subscription only",
        "true for every message that was sent before",
        "the consumer may have seen it: that is what the header says",
    ),
    Departure(
        "disconnect-attempt",
        "DISCONNECT with unacknowledged messages",
        "counts as a delivery attempt for the first message of each subscription, which may be dead then",
        "no attempt is counted, no delay applies",
        "a client that leaves in good order has not failed at a message",
    ),
    Departure(
        "lost-connection",
        "A lost connection with unacknowledged messages",
        "a delivery attempt for all of them, or only for the first of each subscription: its threads decide",
        "a delivery attempt for all of them, as are a missed heart-beat and an ERROR that closes",
        "one rule that does not depend on timing",
    ),
    Departure(
        "redelivery-delay-when",
        "When `redelivery-delay` applies",
        "after DISCONNECT; not after a lost connection",
        "after every failed attempt (NACK, ABORT of an ACK, lost connection); not after UNSUBSCRIBE or DISCONNECT",
        "the delay is there to spare a consumer that fails",
    ),
    Departure(
        "ack-wrong-subscription",
        "ACK that names the wrong subscription",
        "ERROR, and the message can no longer be acknowledged on this connection",
        "ERROR, and nothing has changed",
        "what is refused should have no effect",
    ),
    Departure(
        "ack-mode",
        "An unknown `ack` mode on SUBSCRIBE",
        "counts as `client`",
        "ERROR",
        "a misspelt `client-individual` would acknowledge too much",
    ),
)

ADDRESSES: Final = (
    Departure(
        "block",
        "`address-full-policy` BLOCK",
        "has no effect on STOMP senders: memory fills beyond the limit",
        "the sender's socket is not read until there is room; the broker's heart-beats to it go on",
        "a limit should hold, and TCP makes a sender wait",
    ),
    Departure(
        "fail-in-transaction",
        "`address-full-policy` FAIL in a transaction",
        "the SEND is an ERROR, and COMMIT another",
        "COMMIT is the ERROR, and nothing of the transaction arrives",
        "a message has its effect at COMMIT, and only there is it known whether it fits",
    ),
    Departure(
        "copies-to-full",
        "Dead, expired and diverted messages to a full address with FAIL or BLOCK",
        "a divert to such an address makes the SEND an ERROR",
        "are let in beyond the limit (with DROP they are dropped)",
        "the sender is not to blame, and nothing should be lost or half done",
    ),
    Departure(
        "multicast-on-dual",
        "`subscription-type:MULTICAST` on an address with both routing types",
        "reads the anycast queue that is called like the address",
        "gets a queue of its own, with a copy of each multicast message",
        "it is what the client asked for",
    ),
    Departure(
        "fqqn-other-address",
        "`address::queue` with a queue of another address",
        "reads the queue all the same",
        "ERROR",
        "permissions and settings of the wrong address would apply",
    ),
    Departure(
        "fqqn-no-address",
        "`::queue` where no such queue exists",
        "ERROR",
        "makes the queue on an address of the same name",
        "so does a name without `::`",
    ),
    Departure(
        "sole-queue",
        "SUBSCRIBE to an anycast address whose only queue has another name",
        "ERROR; with `subscription-type:ANYCAST` a second queue is made",
        "reads the only queue",
        "it can mean nothing else",
    ),
    Departure(
        "anycast-turns",
        "An anycast address with several queues",
        "prefers queues that have a consumer who wants the message; takes turns among the others",
        "takes turns among all that accept the message",
        "which queue gets a message does not depend on who is connected",
    ),
    Departure(
        "anycast-filter",
        "An anycast address with several queues, when it is the turn of one whose filter does not match",
        "the message is lost, and counted as routed",
        "the next queue that accepts the message gets it",
        "nothing should be lost while somebody would take it",
    ),
    Departure(
        "prefix-and-header",
        "A prefix and a header that contradict each other (`/queue/a` with `destination-type:MULTICAST`)",
        "the header decides",
        "the prefix decides",
        "the prefix is part of the name, for every client that writes it",
    ),
    Departure(
        "disabled-count",
        "A message for a queue that does not take it (not enabled, or `address::queue` with a filter)",
        "is counted as routed",
        "is counted as unrouted",
        "it reached nobody",
    ),
    Departure(
        "forwarded-destination",
        "`destination` of dead, expired and diverted messages whose sender wrote a prefix",
        "is the new address with the sender's prefix",
        "is the new address",
        "the sender did not write it",
    ),
    Departure(
        "size-estimate",
        "The size of a message, against `max-size-bytes`",
        "an estimate of its Java objects: text counts twice",
        "its bytes, and a fixed amount for each message",
        "it is what the message takes here",
    ),
    Departure(
        "negative-expires",
        "`expires` below 0",
        "the message has expired",
        "ERROR",
        "a time before 1970 is a mistake, and the message would be lost",
    ),
    Departure(
        "temporary-destinations",
        "`/temp-queue/…` and `/temp-topic/…`",
        "are addresses like any others, shared by all",
        "belong to one connection and end with it; in a `reply-to` they become an address that others can send to",
        "an addition: request and reply without agreeing on names",
    ),
    Departure(
        "reason",
        "Dead and expired messages",
        "say where they come from",
        "also say why they are there, in a header `reason`",
        "an addition",
    ),
    Departure(
        "null-header",
        "`_AMQ_ORIG_QUEUE` of a message that reached no queue (`send-to-dla-on-no-route`)",
        "is there and empty",
        "is not there",
        "no queue is not a queue without a name",
    ),
)
