"""docs/operations.md, from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from artemis_py.management.artemis.beans import KINDS, BeanKind
from artemis_py.management.artemis.java import signature_of
from artemis_py.management.artemis.operations import kind_of
from artemis_py.management.jobs import JOBS
from artemis_py.management.listing import FLAG, MAP, NUMBER, TEXT, AnyKind, Field
from artemis_py.management.notifications import HEADERS, SENTENCES
from artemis_py.management.operation import ATTRIBUTES, EDIT, LISTING, Operation
from artemis_py.management.operations.acceptors import ACCEPTORS
from artemis_py.management.operations.addresses import ADDRESSES
from artemis_py.management.operations.bridges import BRIDGES
from artemis_py.management.operations.browse import WHOLE
from artemis_py.management.operations.connections import CONNECTIONS, PRODUCERS, SESSIONS
from artemis_py.management.operations.consumers import CONSUMERS
from artemis_py.management.operations.dead_letters import DEAD_LETTERS
from artemis_py.management.operations.diverts import DIVERTS
from artemis_py.management.operations.messages import LEFT, OF_COPIES
from artemis_py.management.operations.queues import QUEUES
from artemis_py.management.operations.settings import ROLES, SETTINGS
from artemis_py.management.operations.storage import CURSORS, DISKS, SEGMENTS
from artemis_py.management.operations.transactions import TRANSACTIONS
from artemis_py.management.operations.users import USERS
from artemis_py.management.table import OPERATIONS
from artemis_py.management.why.question import REASONS
from tools.docs.table import table

_HEAD: Final = """\
# Operations

What an operator can see and change while the broker runs. Each operation is a request to the HTTP acceptor and a
command; those that Artemis has are also operations of its beans, for Jolokia and for messages over STOMP. The page is
made of the table of operations (`make docs`).

```sh
artemis-py queue ls --where 'messageCount>0' --sort messageCount:desc
curl 'http://127.0.0.1:8161/api/queues?where=messageCount%3E0&sort=messageCount:desc'
```

- **Commands** stand here without `artemis-py`. `--help` has their options, which are the arguments of HTTP. They ask
  the broker at `--url` (else `ARTEMIS_PY_URL`, else that of the [context](commands.md#contexts), else
  http://127.0.0.1:8161). `queue stat` is `queue ls` with the columns that it has in Artemis.
- **HTTP** answers in JSON. `/api/openapi.json` describes it for programs. An error is `{"error": "…"}`, with status 400
  if the request makes no sense, 404 if something does not exist, 409 if it cannot be done as things are. The answer to
  a change comes when the change survives a crash.
- **Permissions** are those of Artemis' management: `view` to look and `edit` to change, on the address that stands
  behind the path, with `management-rbac-prefix` (`mops`) before it ([security.md](security.md)).
- **Beans** are Artemis'; [jolokia.md](jolokia.md) says how to call them, and its `list` has the types of parameters.
  Their forms come last. One of which only the parameters stand here has the resource and the name of the permission;
  *list* is `(options, pageNumber, pageSize)`. Where none stands, Artemis' beans have no such operation.
- **Messages** over STOMP ask for the same as beans, with the resource (`broker`, `queue.orders`, `address.orders`), the
  name of the operation and its arguments in their order as a JSON array ([more](#management-messages)):

  ```text
  SEND
  destination:activemq.management
  reply-to:/temp-queue/replies
  _AMQ_ResourceName:queue.orders
  _AMQ_OperationName:moveMessages

  ["region = 'eu'", "orders.parked"]
  ```

- **The audit log** has a line for each change that somebody asked for who may make it, with who, from where and what
  came of it: `AUD-1001` in the [operational log](queues.md#operational-log). `result` has what the answer counts
  (`retried 0, kept 6`), `done` where it counts nothing, or why nothing was done. `AUD-1002` is a request without
  permission, also to look.
- **What survives a restart**, and what clients see: [destinations.md](destinations.md).
- **Turns stay short**: lists take at most 2 ms of a turn, removals of very many messages an eighth of each.

A [list](#lists) answers with its rows; no answer is named where it is the thing that is shown or has changed. Changes
of many messages answer with:

- `removed`, `moved` …: how many; 1 where it is about one message, group or divert
- `inDelivery`: how many that match were left to the consumers that have them; `inDeliveryMessages`: the first 100
- `kept`: how many stayed for another reason, by reason; `stoppedBecause`: why it ended early
- `replaced`, of copies: by queue, how many messages are gone because copies came to a full ring, or with newer values
- `transient`, of copies: by queue that is not durable, how many do not survive a restart any more
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
  the broker counts up to 50,000 matches behind the page; `isWhole` says whether that was all.
- **`next` goes on where a page ends**: give it as `after`. A page then costs the same at any depth, where `page`
  looks at all that stands before it. It may be used again and at any time until the broker is restarted. A message that
  changes its state between two pages (a consumer takes it or gives it back, its time comes) is shown once, twice or not
  at all; all others once. With a filter and `after`, `count` counts this page alone.
- **A change concerns what was on the queue when it began**, and not what consumers have. Each message is changed
  completely or not at all, also if the broker is killed; what was not done then is left undone.
- **The first messages alone**: `artemis-py queue purge orders --count 100`; all changes of many messages have `count`.
  In Artemis' `removeMessages(flushLimit, filter)` the number is the size of a batch, and all that match are removed.
- **Moved messages are new ones**: they have new numbers, keep their time, their schedule and the headers that say where
  they come from (`_AMQ_ORIG_ADDRESS`, `_AMQ_ORIG_QUEUE`, `_AMQ_ORIG_MESSAGE_ID`), and lose their count of failed
  deliveries. A dead letter that is moved still says where it died. A message of another priority is a new one, too. In
  the counts of a queue they are acknowledged, as in Artemis; readers of the log see `moved`.
- **A target that is full, or takes none of them, gets nothing**: the messages stay, and the answer says why (`kept`,
  `stoppedBecause`). So does a message that a ring would drop at once, or that nothing takes at a dead-letter address.
  A queue gets what is moved to it whatever its filter says; an address routes it as if sent.
- **A ring is never full**: it takes what comes and gives up its oldest messages for it (`replaced`), of which some may
  have been moved just before. So does a queue with last values.
- **Commands end with exit code 1** if any of the chosen messages stayed, or any are `replaced`. A bean answers with one
  number, as in Artemis; the audit log has all counts.
- **A retry of dead letters** puts them on the queue they came from, and on no other. If that is gone and a SEND may not
  create it, or it was a subscription, they stay, and `kept` names the queue. They keep the headers of their death, get
  `_ART_RETRIED` (how often), and do not expire. With `rate` a job does it; a restart forgets it, and what is not done
  stays with the dead letters.
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

A field is a text unless a type or unit stands behind it; where it is a question, it is true or false.
"""

_BEANS: Final = """\
## Beans

What tools read of Artemis' beans by [Jolokia](jolokia.md). Nothing of it can be written. What is only named means the
[field](#lists) of the same name.
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
- **When**: the reply to a change, and the RECEIPT of the SEND, come when the change survives a crash; further frames of
  the connection wait for that. In a transaction, too, it is done at once, and an ABORT does not undo it.
- **The RECEIPT** also has `_AMQ_OperationSucceeded`. Without `reply-to` it alone tells what became of the request. If
  nothing reads at the `reply-to`, the reply is dropped; nothing is created for it.
- **Permissions**: `manage` on `activemq.management`, and `send` on the `reply-to`. With `management-message-rbac` also
  the permission above, as over HTTP. Changes are in the audit log.

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
something else. Notifications are not durable, and not logged. Whoever may listen learns the names of all queues and
addresses.

{types}
Each has `_AMQ_NotifType` and `_AMQ_NotifTimestamp` (over HTTP `type` and `at`), and those of these fields (headers)
that belong to it; others have the same name in both:

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
`/api/`, percent-encoded: `broker`, `queues/orders` for one queue, or a page of a list, of at most 200 rows, with its
arguments. It needs the permission of that operation, too. `watch` in an event is the text of the request.

- **One thing** (`broker`, `queues/orders`): in `state`, `data` is an object with all fields. In `changes` it has those
  that have other values now.
- **A list**: `state` has `key` (the field that names a row), `count`, `page`, `size`, and in `data` the rows in order.
  `changes` has `count`, and in `data` the rows that are new or have changed: each with its `key` and the fields that
  have other values now, a new one with all fields. If rows have come, gone or moved, `order` has the keys of all rows
  of the page, in order; rows that are not in it are gone. Without `order`, the rows are those that were there.
- **After `problem`** with a `watch` the broker goes on trying. `state` comes when it can tell again.
- **`id`**: each notification has one. A client that connects again sends the last one as `Last-Event-ID` (browsers do
  it themselves) and gets what it missed: the broker keeps the last 500 for a minute after the last client has left. If
  there were more, or the broker was started anew, `lost` says how many are missing (-1: nobody knows).
- **A slow client**: the broker keeps up to 256 KiB for it, then leaves notifications out (`lost`). One that takes
  nothing at all for a minute is disconnected.
- **A comment** (a line that begins with `:`) comes every 10 s in which nothing else does.
- **At most 50 clients** may have such a response; more get status 503. It ends when the broker stops, and with a
  `problem` that has no `watch` when the client's permission or login has ended; `artemis-py events` then exits with 1.
"""

_KINDS: Final[tuple[AnyKind, ...]] = (
    QUEUES, WHOLE, DEAD_LETTERS, JOBS, ADDRESSES, CONSUMERS, CONNECTIONS, SESSIONS, PRODUCERS, TRANSACTIONS, ACCEPTORS,
    DIVERTS, BRIDGES, DISKS, SETTINGS, ROLES, REASONS, USERS, SEGMENTS, CURSORS,
)  # fmt: skip
_LIST_PARAMETERS: Final = "(options, pageNumber, pageSize)"
_COMMANDS: Final = frozenset(one.command for one in OPERATIONS)
_KNOWN_RESULTS: Final = (f"; {LEFT}", f"; {OF_COPIES}")
"""What the head of the page says of all of them."""
_PLAIN_LIST: Final = re.compile("count: how many [^;]+; page and size; data: (those of the page|the reasons, .+)")
_ONE: Final = re.compile(r"\w+: 1")
_BEYOND: Final = re.compile("[,;]")
_LISTS_OF: Final[dict[str, AnyKind]] = {
    "acceptors": ACCEPTORS,
    "address": ADDRESSES,
    "queue": QUEUES,
    "divert": DIVERTS,
    "bridge": BRIDGES,
}
"""The list of what a bean is about."""
_PLACE: Final = re.compile(r"{(\w+)}")
_TYPES: Final = {TEXT: "", NUMBER: "number", FLAG: "", MAP: "texts by name"}


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
    """Two lines for each: what it does, and its path, permission and forms in beans."""
    lines = []
    for one in operations:
        permission = _PLACE.sub(lambda found: found[1].upper(), one.permission)
        lines.append(f"- `{one.command}{_words(one)}`: {_told(one)}<br>")
        lines.append(f"  `{one.method} {one.path}`, `{permission}`{''.join(_beans(one))}")
    return "\n".join(lines) + "\n"


def _beans(operation: Operation) -> list[str]:
    """Its forms in Artemis' beans."""
    kind, name = kind_of(operation).component, (operation.permitted_as or operation.name)
    prefix = f"{kind}.{name}" if operation.permission.startswith(f"{kind}.") else ""
    return [f", {_form(kind, prefix, text)}" for text in operation.mbean]


def _form(kind: str, prefix: str, text: str) -> str:
    """One form; where it has resource and name of the permission, its parameters alone."""
    if text == ATTRIBUTES:
        return "attributes"
    signature = signature_of(text)
    parameters = f"({', '.join(one.name for one in signature.parameters)})"
    if parameters == _LIST_PARAMETERS and f"{kind}.{signature.name}" == prefix:
        return "list"
    return f"`{parameters}`" if f"{kind}.{signature.name}" == prefix else f"`{kind}` `{signature.name}{parameters}`"


def _told(operation: Operation) -> str:
    """What it does, and what it answers with where that is not plain."""
    of_many = operation.command.replace("message ", "queue ", 1)
    if operation.command.startswith("message ") and operation.right == EDIT and of_many in _COMMANDS:
        return f"As `{of_many}`, for one message"
    result = operation.result
    for known in _KNOWN_RESULTS:
        result = result.replace(known, "")
    if operation.lists is not None and _PLAIN_LIST.fullmatch(result):
        return operation.sentence
    if operation.shows is not None and result.startswith("the fields of") and not _BEYOND.search(result):
        return operation.sentence
    if _ONE.fullmatch(result) or (result != operation.result and result.endswith(": how many")):
        return operation.sentence
    return f"{operation.sentence} Answers with {result.rstrip('.')}."


def _words(operation: Operation) -> str:
    words = [one.name.upper() for one in operation.arguments if one.is_required and not one.is_secret]
    return "".join(f" {word}" for word in words)


def _fields(kind: AnyKind) -> str:
    lines = [f"- `{field.name}`{_of_type(field)}: {field.sentence}" for field in kind.fields.values()]
    return f"### Fields of {kind.several}\n\n" + "\n".join(lines) + "\n"


def _of_type(field: Field[Any]) -> str:
    """Its unit or type, where that is not plain."""
    shown = field.unit or _TYPES[field.type]
    return f" ({shown})" if shown else ""


def _types() -> str:
    """The notifications that there are."""
    return "\n".join(f"- `{type}`: {sentence}" for type, sentence in SENTENCES.items()) + "\n"


def _notified() -> str:
    """The fields of notifications."""
    return ", ".join(f"`{field}` (`{header}`)" for field, header in HEADERS.items()) + "."


def _attributes(kind: BeanKind) -> str:
    """The attributes of a bean: names alone, of those that are fields of our list by the same name."""
    listed = _LISTS_OF.get(kind.component)
    fields = {} if listed is None else {name.lower(): field.sentence for name, field in listed.fields.items()}
    same = [name for name, one in kind.attributes.items() if fields.get(name.lower()) == one.sentence]
    named = [", ".join(f"`{name}`" for name in same) + ".\n"] if same else []
    others = [f"- `{name}`: {one.sentence}" for name, one in kind.attributes.items() if name not in same]
    return f"### Attributes: {kind.component}\n\n" + "\n".join([*named, *others]) + "\n"
