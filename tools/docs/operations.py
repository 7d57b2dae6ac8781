"""docs/operations.md, from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from artemis_py.management.artemis.beans import KINDS, BeanKind
from artemis_py.management.artemis.operations import kind_of
from artemis_py.management.artemis.signatures import signature_of
from artemis_py.management.fields import FLAG, MAP, NUMBER, TEXT, AnyKind
from artemis_py.management.jobs import JOBS
from artemis_py.management.notifications import HEADERS, SENTENCES
from artemis_py.management.operation import ATTRIBUTES, EDIT, LISTING, Operation
from artemis_py.management.operations.acceptors import ACCEPTORS
from artemis_py.management.operations.addresses import ADDRESSES
from artemis_py.management.operations.browse import WHOLE
from artemis_py.management.operations.connections import CONNECTIONS
from artemis_py.management.operations.consumers import CONSUMERS
from artemis_py.management.operations.dead_letters import DEAD_LETTERS
from artemis_py.management.operations.diverts import DIVERTS
from artemis_py.management.operations.queues import QUEUES
from artemis_py.management.operations.sessions import PRODUCERS, SESSIONS
from artemis_py.management.operations.settings import ROLES, SETTINGS
from artemis_py.management.operations.storage import CURSORS, DISKS, SEGMENTS
from artemis_py.management.operations.transactions import TRANSACTIONS
from artemis_py.management.operations.users import USERS
from artemis_py.management.table import OPERATIONS
from artemis_py.management.why.finding import REASONS
from tools.docs.table import table

_HEAD: Final = """\
# Operations

What an operator can see and change while the broker runs. Each operation is a request to the HTTP acceptor and a
command, and those that Artemis has are also operations of beans, for Jolokia and for messages over STOMP. This page
comes from the table of operations (`make docs`), and a test carries out each of them in each of its forms.

```sh
artemis-py queue ls --where 'messageCount>0' --sort messageCount:desc
curl 'http://127.0.0.1:8161/api/queues?where=messageCount%3E0&sort=messageCount:desc'
```

- **Commands** ask the broker at `--url` (else `ARTEMIS_PY_URL`, else that of the [context](commands.md#contexts), else
  http://127.0.0.1:8161), and log in as [all commands do](security.md). With `--json` they print what it answers. Those
  that destroy messages or end connections ask first; `--yes` answers ([commands.md](commands.md)). `queue stat` is
  `queue ls` with the columns that it has in Artemis.
- **HTTP** answers in JSON. `/api/openapi.json` describes it for programs. An error is `{"error": "…"}`, with status 400
  if the request makes no sense, 404 if something does not exist, and 409 if it cannot be done as things are. The answer
  to a change comes when the change survives a crash.
- **Permissions** are those of Artemis' management: `view` to look and `edit` to change, on the address in the column
  *permission*, with `management-rbac-prefix` (`mops`) before it ([security.md](security.md)).
- **Beans** are those of Artemis, for tools that speak Jolokia: [jolokia.md](jolokia.md) says how. A queue has its own
  bean, and so has an address; what concerns the broker is on its bean.
- **Messages** over STOMP ask for the same as beans, so the column *bean or message* is both. Its first word is the
  resource: `broker` as it stands, `queue` with the name behind it (`queue.orders`), and so `address`. The operation is
  named without its parameters, and has the arguments in their order as a JSON array; `null` is none. `attributes` are
  read one by one, with `_AMQ_Attribute`. [Management messages](#management-messages) has the rest. So
  `queue` `moveMessages(String filter, String otherQueueName)` is:

  ```text
  SEND
  destination:activemq.management
  reply-to:/temp-queue/replies
  _AMQ_ResourceName:queue.orders
  _AMQ_OperationName:moveMessages

  ["region = 'eu'", "orders.parked"]
  ```

- **The audit log** has a line for each change that somebody who may make it has asked for, with who, from where and
  what came of it: `AUD-1001` in the [operational log](queues.md#operational-log). `result` has what the answer counts
  (`retried 0, kept 6`), `done` where it counts nothing, or why nothing was done. `AUD-1002` is a request that lacked a
  permission, also one that only looks.
- **What survives a restart**, what can change while a queue is there, and what clients see:
  [destinations.md](destinations.md).
- **Turns stay short.** Lists go on in steps, of at most 2 ms in a turn, however many rows there are. To remove very
  many messages goes on in an eighth of each turn.
"""

_MESSAGES: Final = """\
## Messages

```sh
artemis-py queue browse orders --filter "region = 'eu'" --which ready,paged
artemis-py queue move orders orders.parked --filter "region = 'eu'"
artemis-py dead ls
artemis-py dead retry --origin orders --cause max_deliveries --dry-run
artemis-py dead retry --origin orders --cause max_deliveries --rate 50
```

- **A browse shows a queue in its order**: what consumers have, what is ready, what is in pages, what waits for its
  time. A message that no consumer takes meanwhile is shown exactly once, and later ones are not shown. With a filter
  the broker looks on for 50,000 matches behind the page to count them; `isWhole` says whether that was all. Pages are
  read for the browse alone, and deep pages take several turns.
- **`next` goes on where a page ends**: give it as `after`. A page costs what it shows then, at any depth, where `page`
  looks at all that stands before it. The broker keeps nothing meanwhile, so a cursor may be used when you like, and
  again, until the broker is restarted. A message that stays as it is, is shown once, whatever comes and goes. One that
  changes its state between two pages (a consumer takes it or gives it back, its time comes) is shown once, twice or not
  at all. With a filter and `after`, `count` counts this page alone. To find the next of what one consumer has, the
  broker goes through all of that.
- **A change concerns what was on the queue when it began.** What consumers have is left alone: it is counted and named
  (`inDelivery`, `inDeliveryMessages`). Each message is changed completely or not at all, also if the broker is killed:
  a copy and the end of its original are one record of the log. What was not done then is left undone.
- **The first messages of a queue** alone: `artemis-py queue purge orders --count 100`, `POST
  /api/queues/orders/purge?count=100`, and `removeFirstMessages(100)` of the queue's bean, also in a management message.
  The other changes of many messages have `count`, too. In Artemis' `removeMessages(flushLimit, filter)` the
  number is the size of a batch, and all that match are removed.
- **Moved messages are new ones**: they have new numbers, keep their time, their schedule and the headers that say where
  they come from (`_AMQ_ORIG_ADDRESS`, `_AMQ_ORIG_QUEUE`, `_AMQ_ORIG_MESSAGE_ID`), and lose their count of failed
  deliveries. A dead letter that is moved still says where it died. A message of another priority is a new one, too. In
  the counts of a queue they are acknowledged, as in Artemis; readers of the log see `moved`.
- **A target that is full, or takes none of them, gets nothing**: the messages stay, and the answer says why (`kept`,
  `stoppedBecause`). So does a message that a ring would drop at once, or that nothing takes at a dead-letter address.
  A queue gets what is moved to it whatever its filter says; an address routes it as if sent.
- **A ring is never full**: it takes what comes, as from a sender, and gives up its oldest messages for it, of which
  some may have been moved just before. So does a queue with last values. `replaced` counts what is gone, by the queue.
  `transient` counts what a restart loses from then on, because only queues took it that are not durable.
- **Commands end with exit code 1** if any of the chosen messages stayed, or any are `replaced`. A bean of Artemis has
  one number, as in Artemis: it counts what was moved, and no more. The audit log (`AUD-1001`) has all counts.
- **Dead letters** say their `reason`: `max_deliveries`, `max_cancels`, `time_limit`, `forced_expire`, `no_route` or
  `sent_by_operator`. A retry puts them on the queue they came from, and on no other. An anycast queue that is gone is
  created as a SEND would; if it may not be, and if a subscription is gone, they stay, and `kept` names the queue. They
  keep these headers, get `_ART_RETRIED` (how often), and do not expire. With `rate` a job does it, which `job ls` shows
  and `job stop` ends; a restart forgets it, and what is not done stays with the dead letters.
- **A body is a file**: it comes with its sender's content-type, as an attachment, in a sandbox, so a browser does not
  carry it out.
"""

_LISTS: Final = """\
## Lists

A list answers with `count` (how many rows match), `page`, `size`, and the rows in `data`. Its arguments:

{arguments}

A condition is a field, an operator and a value: `=` and `!=` for all fields, `~` (contains, in any case) and `!~` for
texts, `>`, `<`, `>=` and `<=` for numbers. Equal rows stay in the order in which they were made. At most 100,000 rows
are sorted: with more, say with `where` which of them you want.
"""

_BEANS: Final = """\
## Beans

What tools read of Artemis' beans by [Jolokia](jolokia.md). Nothing of it can be written.
"""

_MANAGEMENT_MESSAGES: Final = """\
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

_EVENTS: Final = """\
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

_KINDS: Final[tuple[AnyKind, ...]] = (
    QUEUES, WHOLE, DEAD_LETTERS, JOBS, ADDRESSES, CONSUMERS, CONNECTIONS, SESSIONS, PRODUCERS, TRANSACTIONS, ACCEPTORS,
    DIVERTS, DISKS, SETTINGS, ROLES, REASONS, USERS, SEGMENTS, CURSORS,
)  # fmt: skip
_PLACE: Final = re.compile(r"{(\w+)}")
_TYPES: Final = {TEXT: "text", NUMBER: "number", FLAG: "true or false", MAP: "texts by name"}


def page() -> str:
    """The page."""
    looks = [one for one in OPERATIONS if one.right != EDIT]
    changes = [one for one in OPERATIONS if one.right == EDIT]
    rows = [
        [f"`{argument.name}`", argument.sentence, "" if not argument.default else f"`{argument.default}`"]
        for argument in LISTING
    ]
    parts = [
        _HEAD,
        "## Look\n\n" + _operations(looks),
        "## Change\n\n" + _operations(changes),
        _MESSAGES,
        _LISTS.format(arguments=table(["argument", "", "default"], rows)),
        *[_fields(kind) for kind in _KINDS],
        _BEANS,
        *[_attributes(kind) for kind in KINDS],
        _MANAGEMENT_MESSAGES.format(types=_types(), fields=_notified()),
        _EVENTS,
    ]
    return "\n".join(parts)


def _operations(operations: Sequence[Operation]) -> str:
    rows = [
        [
            f"`artemis-py {one.command}{_words(one)}`",
            f"`{one.method} {one.path}`",
            f"`{_PLACE.sub(lambda found: found[1].upper(), one.permission)}`",
            _beans(one),
            f"{one.sentence} Answers with {one.result}.",
        ]
        for one in operations
    ]
    return table(["command", "HTTP", "permission", "bean or message", ""], rows) + "\n"


def _beans(operation: Operation) -> str:
    """Its forms in Artemis' beans, or why it has none."""
    kind = kind_of(operation).component
    forms = [
        f"`{kind}` attributes" if text == ATTRIBUTES else f"`{kind}` `{signature_of(text).readable}`"
        for text in operation.mbean
    ]
    return "<br>".join(forms) or operation.no_mbean


def _words(operation: Operation) -> str:
    words = [one.name.upper() for one in operation.arguments if one.is_required and not one.is_secret]
    return "".join(f" {word}" for word in words)


def _fields(kind: AnyKind) -> str:
    rows = [[f"`{field.name}`", _TYPES[field.type], field.unit, field.sentence] for field in kind.fields.values()]
    return f"### Fields of {kind.several}\n\n" + table(["field", "type", "unit", ""], rows) + "\n"


def _types() -> str:
    """The notifications that there are."""
    return table(["type", "when"], [[f"`{type}`", sentence] for type, sentence in SENTENCES.items()]) + "\n"


def _notified() -> str:
    """The fields of notifications."""
    return table(["field", "header"], [[f"`{field}`", f"`{header}`"] for field, header in HEADERS.items()])


def _attributes(kind: BeanKind) -> str:
    rows = [
        [f"`{one.name}`", f"`{one.type.rpartition('.')[2].replace(';', '[]')}`", one.sentence]
        for one in kind.attributes.values()
    ]
    return f"### Attributes: {kind.component}\n\n" + table(["attribute", "type", ""], rows) + "\n"
