"""The sections of docs/operations.md about management messages, notifications and events."""

from __future__ import annotations

from typing import Final

MESSAGES: Final = """\
## Management messages

The operations of Artemis' management also answer messages, as in Artemis. A STOMP client sends one to
`activemq.management` (`management-address`) and gets the reply at its `reply-to`:

```text
SEND                                        MESSAGE
destination:activemq.management             destination:/temp-queue/replies
reply-to:/temp-queue/replies                _AMQ_OperationSucceeded:true
correlation-id:17                           correlation-id:17
_AMQ_ResourceName:queue.orders
_AMQ_OperationName:removeAllMessages        [3]

[]
```

- **What**: `_AMQ_ResourceName` is `broker`, `queue.NAME`, `address.NAME`, `acceptor.NAME` or `divert.NAME`;
  `_AMQ_OperationName` an operation of Artemis' bean, with its arguments as a JSON array in the body (at most 64 KiB),
  or `_AMQ_Attribute` an attribute such as `messageCount`.
- **The reply** has a JSON array with the result in its body; it is empty if there is none. Lists are JSON in a text, as
  in Artemis. If `_AMQ_OperationSucceeded` is `false`, the array has the reason. A reply of more than 4 MiB is refused:
  ask for a page.
- **When**: the reply to a change, and the RECEIPT of the SEND, come when the change survives a crash. Further frames of
  the connection wait for that. A transaction makes no difference: what is asked for is done at once, and an ABORT does
  not undo it.
- **The RECEIPT** of the SEND says that the request has been carried out, and, as the reply does, with
  `_AMQ_OperationSucceeded` whether it succeeded.
- **Without `reply-to`** it is done, and only a RECEIPT tells what became of it. If nothing reads at the `reply-to`, the
  reply is dropped; nothing is created for it.
- **Permissions**: `manage` on `activemq.management`, and `send` on the `reply-to`. With `management-message-rbac` also
  the permission in the tables above, as over HTTP. Changes are in the audit log.

## Notifications

What happens in the broker goes to those who listen: as messages on the address `activemq.notifications`
(`management-notification-address`), and as [events](#events) over HTTP. A message has no body and Artemis' headers, so
a selector chooses:

```text
SUBSCRIBE
id:1
destination:activemq.notifications
selector:_AMQ_NotifType = 'CONSUMER_CREATED' AND _AMQ_RoutingName = 'orders'
```

It costs nothing while nobody listens. Each queue of the address is a ring of 2,000 messages, unless its settings say
something else: who reads too slowly loses the oldest. Notifications are not durable, and not logged. Whoever may listen
learns the names of all queues and addresses, also of temporary ones.

{types}
Each has `_AMQ_NotifType` and `_AMQ_NotifTimestamp` (over HTTP `type` and `at`), and those of these fields that belong
to it; fields without a header of Artemis' have the same name in both:

{fields}
"""
"""``types`` and ``fields`` are tables."""

EVENTS: Final = """\
## Events

`GET /api/events` is a response that does not end: it tells what happens in the broker, as server-sent events
(`text/event-stream`). It needs the permission `view` on `mops.broker.getEvents`.

```sh
artemis-py events --follow
curl -N 'http://127.0.0.1:8161/api/events?watch=broker&watch=queues%3Fsort%3DmessageCount%3Adesc%26size%3D20'
```

| argument | |
| --- | --- |
| `type` | only notifications of this type; may be given several times, and may have several with commas between |
| `watch` | what else to report: see below; may be given up to 16 times |

Each event has an `event:` line with its kind and one `data:` line with a JSON object:

| event | when | data |
| --- | --- | --- |
| `hello` | first | `broker` (its name), `version`, `now` (epoch ms) |
| `notification` | something happened | `type`, `at` (epoch ms), and the fields of the type |
| `state` | first for each `watch`, and after changes were left out | `watch`, `at`, `data`: everything |
| `changes` | about once a second, if something changed | `watch`, `at`, `data`: what changed |
| `problem` | a `watch` cannot be reported, such as a queue that was deleted | `watch`, `at`, `error` |
| `problem` | the last event: the client may not have them any more, or its login has ended | `error` |
| `lost` | the client read too slowly | `count`: how many notifications were left out |

**To watch** is to get what a look operation answers, and then what changes in it. A `watch` is the request without
`/api/`: `broker`, `queues/orders` for one queue, or a page of a list with its arguments such as
`queues?where=name~orders&sort=messageCount:desc&size=20&fields=name,messageCount`. As part of a URL it is
percent-encoded. It needs the permission of that operation, too. `watch` in an event is the text of the request.

- **One thing** (`broker`, `queues/orders`): in `state`, `data` is an object with all fields. In `changes` it has those
  that have other values now.
- **A list**: `state` has `key` (the field that names a row), `count`, `page`, `size`, and in `data` the rows in order.
  `changes` has `count`, and in `data` the rows that are new or have changed: each with its `key` and the fields that
  have other values now, a new one with all fields. If rows have come, gone or moved, `order` has the keys of all rows
  of the page, in order; rows that are not in it are gone. Without `order`, the rows are those that were there.
- **After `problem`** with a `watch` the broker goes on trying. `state` comes when it can tell again.
- **Rates** are differences of counters such as `messagesAdded`, divided by the difference of `at`.

All clients that watch the same share one look a second. The broker looks in steps, so no turn is longer for it.

- **`id`**: each notification has one. A client that connects again sends the last one as `Last-Event-ID` (browsers do
  it themselves) and gets what it missed: the broker keeps the last 500 for a minute after the last client has left. If
  there were more, or the broker was started anew, `lost` says how many are missing (-1: nobody knows).
- **A slow client** is no burden: the broker keeps up to 256 KiB for it, then leaves notifications out and says how
  many. One that takes nothing at all for a minute is disconnected.
- **A comment** (a line that begins with `:`) comes every 10 s in which nothing else does, so that both sides notice
  when the other one is gone.
- **A list** that is watched has a page of at most 200 rows.
- At most 50 clients may have such a response; more get status 503. When the broker stops, the responses
  end. They end with a `problem` that has no `watch` when permissions, users or roles have changed so that the client
  may not have them any more, and when its login has ended; `artemis-py events` then prints that and exits with 1.
"""
