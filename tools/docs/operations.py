"""docs/operations.md, from the table of operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.declarations import DivertConfig, QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.management.artemis.beans import KINDS, BeanKind
from artemis_py.management.artemis.java import signature_of
from artemis_py.management.artemis.operations import kind_of
from artemis_py.management.listing import FLAG, MAP, NUMBER, TEXT, AnyKind, Field
from artemis_py.management.notifications import HEADERS, SENTENCES
from artemis_py.management.operation import ATTRIBUTES, EDIT, LISTING, Operation
from artemis_py.management.operations.addresses import ADDRESSES
from artemis_py.management.operations.bridges import BRIDGES
from artemis_py.management.operations.browse import WHOLE
from artemis_py.management.operations.connections import ACCEPTORS, CONNECTIONS, PRODUCERS, SESSIONS
from artemis_py.management.operations.consumers import CONSUMERS
from artemis_py.management.operations.dead_letters import DEAD_LETTERS
from artemis_py.management.operations.diverts import DIVERTS
from artemis_py.management.operations.jobs import JOBS
from artemis_py.management.operations.messages import GONE, LEFT, OF_COPIES
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
command. Those that Artemis has are also operations of its beans, for Jolokia and for messages over STOMP.

```sh
artemis-py queue ls --where 'messageCount>0' --sort messageCount:desc
curl 'http://127.0.0.1:8161/api/queues?where=messageCount%3E0&sort=messageCount:desc'
```

- **Commands** are here without `artemis-py`. `--help` has their options, which are the arguments of HTTP. They ask the
  broker at `--url` (else `ARTEMIS_PY_URL`, else that of the [context](commands.md#contexts), else
  http://127.0.0.1:8161). `queue stat` is `queue ls` with Artemis' columns.
- **HTTP** answers in JSON; `/api/openapi.json` describes it for programs. An error is `{"error": "…"}`, with status 400
  for a wrong request, 404 if something does not exist, 409 if it cannot be done now. A change is answered when it
  survives a crash.
- **Permissions** are those of Artemis' management: `view` to look and `edit` to change. Each row has their address
  after the path, without `management-rbac-prefix` (`mops.`) in front ([security.md](security.md)).
- **Beans** are Artemis' ([jolokia.md](jolokia.md)). Their forms come last in a row: the parameters, if resource and
  name are those of the permission; *list* is `(options, pageNumber, pageSize)`. With `…` there are shorter forms, which
  Jolokia's `list` has, with types. A row without any has no operation of a bean.
- **Messages** over STOMP ask for the same as beans, with the resource (`broker`, `queue.orders`, `address.orders`), the
  operation, and its arguments in order as a JSON array ([more](#management-messages)):

  ```text
  SEND
  destination:activemq.management
  reply-to:/temp-queue/replies
  _AMQ_ResourceName:queue.orders
  _AMQ_OperationName:moveMessages

  ["region = 'eu'", "orders.parked"]
  ```

- **The audit log** has a line `AUD-1001` for each permitted change: who asked, from where, and the result
  ([operational log](queues.md#operational-log)). `result` has the counts of the answer (`retried 0, kept 6`), `done`,
  or why nothing was done. `AUD-1002` is a request without permission, also to look.
- **What survives a restart**, and what clients see: [destinations.md](destinations.md). A restart creates again what
  broker.xml declares.

A [list](#lists) answers with its rows. Where no answer is named, it is the thing that is shown or was changed, or its
name. Changes of many messages answer with

- `removed`, `moved` …: how many;
- `inDelivery`: how many stayed, because consumers have them; `inDeliveryMessages`: the first 100;
- `kept`: how many stayed for another reason, by reason; `stoppedBecause`: why it ended early;
- `replaced`: how many messages are gone, because copies came to a full ring or had newer values, by queue;
- `transient`: how many copies do not survive a restart, because their queue is not durable, by queue.
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
  time. A message that no consumer takes meanwhile is shown exactly once; later ones are not shown. With a filter, the
  broker counts up to 50,000 matches after the page; `isWhole` says whether that was all.
- **The next page**: pass `next` as `after`. That costs the same at any depth, where `page` looks at all messages before
  it. `next` is valid until the broker restarts. A message that changes its state between two pages may be shown once,
  twice or not at all. With a filter and `after`, `count` counts this page alone.
- **A change concerns what was on the queue when it began**, except what consumers have. Each message is changed
  completely or not at all, also if the broker is killed. Removed messages do not become dead letters.
- **The first messages alone**: all changes of many messages have `count`: `artemis-py queue purge orders --count 100`.
  (In Artemis' `removeMessages(flushLimit, filter)` the number is the size of a batch: all that match are removed.)
- **Moved messages are new ones**, with new numbers, and so are those with a new priority. They keep their time,
  schedule and the headers about their origin (`_AMQ_ORIG_ADDRESS`, `_AMQ_ORIG_QUEUE`, `_AMQ_ORIG_MESSAGE_ID`), and lose
  their count of failed deliveries. A queue counts them as acknowledged, as in Artemis; the log has `moved`.
- **Messages stay** if the target is full or takes none of them, if a ring would drop them at once, or if nothing takes
  them at a dead-letter address; the answer says why (`kept`, `stoppedBecause`). A queue gets what is moved to it
  whatever its filter says; an address routes it as if sent.
- **A ring is never full**: it drops its oldest messages (`replaced`), even those that were moved just before. A
  last-value queue replaces its older values.
- **Commands end with exit code 1** if a chosen message stayed, or any was `replaced`. A bean answers with one number,
  as in Artemis; the audit log has all counts.
- **A retry** sends dead letters to the queue they came from, and to no other. A deleted anycast queue is created again,
  as by a SEND. Otherwise they stay, as do those of a deleted subscription; `kept` names the queue. They keep the
  headers of their death, get `_ART_RETRIED` (how often), and do not expire. With `rate`, a job does it; a restart ends
  the job.
- **A body is a file**, with its sender's content-type, as an attachment in a sandbox: browsers do not run it.
"""

_LISTS: Final = """\
## Lists

A list answers with `count` (how many rows match), `page`, `size`, and the rows in `data`. Its arguments:

{arguments}

A condition is a field, an operator and a value: `=` and `!=` for all fields, `~` (contains, in any case) and `!~` for
texts, `>`, `<`, `>=` and `<=` for numbers. Equal rows keep the order in which they were made. At most 100,000 rows are
sorted; with more, limit them with `where`.

A field that is a question is true or false. Units are in parentheses. Fields without a text are what their name says,
or in the first of these lists.
"""

_SHARED: Final = """\
### Fields that several lists have

{fields}
"""

_BEANS: Final = """\
## Beans

What tools read of Artemis' beans by [Jolokia](jolokia.md). They are read-only. Those that are only named are the
[field](#lists) of the same name, or what their name says.
"""

_MANAGEMENT_MESSAGES: Final = """\
## Management messages

As in Artemis, a STOMP client sends a message to `activemq.management` (`management-address`), and gets the reply at its
`reply-to`:

```text
SEND                                        MESSAGE
destination:activemq.management             destination:/temp-queue/replies
reply-to:/temp-queue/replies                _AMQ_OperationSucceeded:true
correlation-id:17                           correlation-id:17
_AMQ_ResourceName:queue.orders
_AMQ_OperationName:removeAllMessages        [3]

[]
```

- **The request**: `_AMQ_ResourceName` is `broker`, `queue.NAME`, `address.NAME`, `acceptor.NAME` or `divert.NAME`.
  `_AMQ_OperationName` is an operation of Artemis' bean, with its arguments as a JSON array in the body (at most 64
  KiB). Or `_AMQ_Attribute` is an attribute such as `messageCount`.
- **The reply** has a JSON array with the result, or with the reason if `_AMQ_OperationSucceeded` is `false`. Lists are
  JSON in a text, as in Artemis. A reply of more than 4 MiB is refused: ask for a page.
- **When**: the reply to a change, and the RECEIPT of the SEND, come when the change survives a crash. Further frames of
  the connection wait. A transaction does not delay it, and an ABORT does not undo it.
- **The RECEIPT** also has `_AMQ_OperationSucceeded`. If nothing reads at the `reply-to`, the reply is dropped.
- **Permissions**: `manage` on `activemq.management`, and `send` on the `reply-to`; with `management-message-rbac` also
  that of the operation.

## Notifications

The broker reports what happens: as messages on the address `activemq.notifications`
(`management-notification-address`), and as [events](#events) over HTTP. A message has Artemis' headers and no body.
Choose with a selector:

```text
SUBSCRIBE
id:1
destination:activemq.notifications
selector:_AMQ_NotifType = 'CONSUMER_CREATED' AND _AMQ_RoutingName = 'orders'
```

Each queue of the address is a ring of 2,000 messages, unless its settings say something else. Notifications are not
durable, and not logged. Whoever may listen learns the names of all queues and addresses.

{types}
Each has `_AMQ_NotifType` and `_AMQ_NotifTimestamp` (over HTTP `type` and `at`), and some of these fields (headers).
Other fields have the same name in both:

{fields}
"""
"""``types`` and ``fields`` are tables."""

_EVENTS: Final = """\
## Events

`GET /api/events` reports what happens in the broker as server-sent events (`text/event-stream`). It needs the
permission `view` on `mops.broker.getEvents`.

```sh
artemis-py events --follow
curl -N 'http://127.0.0.1:8161/api/events?watch=broker&watch=queues%3Fsort%3DmessageCount%3Adesc%26size%3D20'
```

| argument | |
| --- | --- |
| `type` | only notifications of this type; repeat it, or separate several by commas |
| `watch` | what else to report, see below; up to 16 times |

Each event has an `event:` line with its kind and one `data:` line with a JSON object:

| event | when | data |
| --- | --- | --- |
| `hello` | first | `broker` (its name), `version`, `now` (epoch ms) |
| `notification` | something happened | `type`, `at` (epoch ms), and the fields of the type |
| `state` | first for each `watch`, and after changes were left out | `watch`, `at`, `data`: everything |
| `changes` | about once a second, if something changed | `watch`, `at`, `data`: what changed |
| `problem` | a `watch` cannot be reported, such as a queue that was deleted | `watch`, `at`, `error` |
| `problem` | as the last event: the client's permission or login has ended | `error` |
| `lost` | the client read too slowly | `count`: how many notifications were left out |

**A `watch`** is a look operation: the client gets its answer, and then what changes in it. It is the request without
`/api/`, percent-encoded: `broker`, `queues/orders` for one queue, or a page of a list (at most 200 rows) with its
arguments. It also needs the permission of that operation. Its events have that text as `watch`.

- **One thing** (`broker`, `queues/orders`): in `state`, `data` has all fields; in `changes`, those with new values.
- **A list**: `state` has `key` (the field that names a row), `count`, `page`, `size`, and in `data` the rows in order.
  `changes` has `count`, and in `data` new rows with all fields, and changed rows with their `key` and new values. If
  rows have come, gone or moved, `order` has the keys of all rows of the page, in order.
- **After a `problem`** with a `watch`, the broker goes on trying, and sends `state` when it succeeds.
- **`id`**: each notification has one. A client that connects again sends the last one as `Last-Event-ID` (browsers do)
  and gets what it missed. The broker keeps the last 500, for a minute after the last client has left. If there were
  more, or the broker was restarted, `lost` says how many are missing (-1: unknown).
- **A slow client**: the broker keeps up to 256 KiB for it, then leaves notifications out (`lost`). One that takes
  nothing for a minute is disconnected.
- **A comment** (a line that begins with `:`) comes after 10 s without anything else.
- **At most 50 clients** may have such a response; more get status 503. It ends when the broker stops, or after the last
  `problem`; `artemis-py events` then exits with 1.
"""

_KINDS: Final[tuple[AnyKind, ...]] = (
    QUEUES, WHOLE, DEAD_LETTERS, JOBS, ADDRESSES, CONSUMERS, CONNECTIONS, SESSIONS, PRODUCERS, TRANSACTIONS, ACCEPTORS,
    DIVERTS, BRIDGES, DISKS, SETTINGS, ROLES, REASONS, USERS, SEGMENTS, CURSORS,
)  # fmt: skip
_LIST_PARAMETERS: Final = "(options, pageNumber, pageSize)"
_COMMANDS: Final = frozenset(one.command for one in OPERATIONS)
_KNOWN_SENTENCES: Final = (
    GONE,
    "A restart creates it again if broker.xml declares it.",
    "A restart or a reload creates it again if broker.xml declares it.",
    "They do not go to the dead-letter address.",
)
_KNOWN_RESULTS: Final = (f"; {LEFT}", f"; {OF_COPIES}")
"""What the page says of all of them."""
_PLAIN_LIST: Final = re.compile("count: how many [^;]+; page and size; data: (those of the page|the reasons, .+)")
_ONE: Final = re.compile(r"\w+: (1|the (id|name|number) of the \w+|the (name|session|transaction))")
_BEYOND: Final = re.compile("[,;]")
_LISTS_OF: Final[dict[str, AnyKind]] = {
    "acceptors": ACCEPTORS,
    "address": ADDRESSES,
    "queue": QUEUES,
    "divert": DIVERTS,
    "bridge": BRIDGES,
}
"""The list of what a bean is about."""
_SETTINGS_OF: Final = {
    "queue": frozenset(settings_of(QueueConfig)),
    "divert": frozenset(settings_of(DivertConfig)),
    "bridge": frozenset(settings_of(BridgeConfig)),
}
"""What the file says of the things in a list, by the names there."""
_CAPITAL: Final = re.compile("[A-Z]")
_PLACE: Final = re.compile(r"{(\w+)}")
_TYPES: Final = {TEXT: "", NUMBER: "", FLAG: "", MAP: "texts by name"}
_COUNTED: Final = frozenset({"messages", "pages"})
"""Units that the sentence says, too."""
_SHARED_BY: Final = 3
"""So many lists have a field, with the same meaning, before the page says it once for all of them."""
_FORMS: Final = 2
"""So many forms of a bean the page shows; of more, the longest."""
_WORD: Final = re.compile("[a-z]+")
_EMPTY_WORDS: Final = frozenset(
    {"a", "all", "an", "and", "are", "at", "by", "does", "every", "how", "in", "is", "it", "its", "many", "ms", "name"}
    | {"names", "of", "on", "or", "the", "they", "this", "to"}
)


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
        "## Look\n\nAll by GET.\n\n" + _operations(looks, method="GET"),
        "## Change\n\n" + _operations(changes),
        _MESSAGES,
        _LISTS.format(arguments=table(["argument", "", "default"], rows)),
        _SHARED.format(fields="\n".join(_field(one) for one in _shared())),
        *[_fields(kind) for kind in _KINDS],
        _BEANS,
        *[_attributes(kind) for kind in KINDS],
        _MANAGEMENT_MESSAGES.format(types=_types(), fields=_notified()),
        _EVENTS,
    ]
    return "\n".join(parts)


def _operations(operations: Sequence[Operation], method: str = "") -> str:
    """Two lines for each: what it does, and its path, permission and forms in beans. What does the same to one message
    is below what does it to many.
    """
    of_one = {one.command: one for one in operations if one.command.startswith("message ") and one.right == EDIT}
    answers: dict[str, str] = {}
    lines = []
    for one in operations:
        if one.command in of_one and one.command.replace("message ", "queue ", 1) in _COMMANDS:
            continue
        lines += [f"- `{one.command}{_words(one)}`: {_told(one, answers)}<br>", f"  {_reached(one, method)}"]
        same = of_one.get(one.command.replace("queue ", "message ", 1))
        if same is not None and same is not one:
            lines[-1] += "<br>"
            lines.append(f"  `{same.command}{_words(same)}`: {_reached(same, method)}")
    return "\n".join(lines) + "\n"


def _reached(operation: Operation, method: str) -> str:
    """Its method if it is another one, its path, its permission, and its forms in beans."""
    permission = _PLACE.sub(lambda found: found[1].upper(), operation.permission)
    path = operation.path if operation.method == method else f"{operation.method} {operation.path}"
    return f"`{path}`, `{permission}`{''.join(_beans(operation))}"


def _beans(operation: Operation) -> list[str]:
    """Its forms in Artemis' beans."""
    kind, name = kind_of(operation).component, (operation.permitted_as or operation.name)
    prefix = f"{kind}.{name}" if operation.permission.startswith(f"{kind}.") else ""
    if len(operation.mbean) <= _FORMS:
        return [f", {_form(kind, prefix, text)}" for text in operation.mbean]
    longest = max(operation.mbean, key=lambda text: len(signature_of(text).parameters))
    return [f", {_form(kind, prefix, longest)} …"]


def _form(kind: str, prefix: str, text: str) -> str:
    """One form; where it has resource and name of the permission, its parameters alone."""
    if text == ATTRIBUTES:
        return "attributes"
    signature = signature_of(text)
    parameters = f"({', '.join(one.name for one in signature.parameters)})"
    if parameters == _LIST_PARAMETERS and f"{kind}.{signature.name}" == prefix:
        return "list"
    return f"`{parameters}`" if f"{kind}.{signature.name}" == prefix else f"`{kind}` `{signature.name}{parameters}`"


def _told(operation: Operation, answers: dict[str, str]) -> str:
    """What it does, and what it answers with where that is not plain. ``answers`` has the command that first answered
    with something.
    """
    sentence = operation.sentence
    for known in _KNOWN_SENTENCES:
        sentence = sentence.replace(f" {known}", "")
    result = operation.result
    for known in _KNOWN_RESULTS:
        result = result.replace(known, "")
    if operation.lists is not None and _PLAIN_LIST.fullmatch(result):
        return sentence
    if operation.shows is not None and result.startswith("the fields of") and not _BEYOND.search(result):
        return sentence
    if _ONE.fullmatch(result) or (result != operation.result and result.endswith(": how many")):
        return sentence
    first = answers.setdefault(result, operation.command)
    return f"{sentence} Answer: {result.rstrip('.') if first == operation.command else f'as `{first}`'}."


def _words(operation: Operation) -> str:
    words = [one.name.upper() for one in operation.arguments if one.is_required and not one.is_secret]
    return "".join(f" {word}" for word in words)


def _fields(kind: AnyKind) -> str:
    """Those that need no words by their names, then the others."""
    settings = _SETTINGS_OF.get(kind.one, frozenset())
    shared = [field.name for field in kind.fields.values() if _key(field) in map(_key, _shared())]
    set_there = [name for name in kind.fields if _CAPITAL.sub(lambda found: f"-{found[0].lower()}", name) in settings]
    own = [field for field in kind.fields.values() if field.name not in (*shared, *set_there)]
    plain = [field.name for field in own if _is_plain(field.name, field.sentence, kind.one)]
    parts = [_names((*plain, *shared))] if plain or shared else []
    parts.append("\n".join(_field(field) for field in own if field.name not in plain))
    if set_there:
        parts.append(f"As in [configuration.md](configuration.md): {_names(set_there)}")
    return "\n\n".join([f"### Fields of {kind.several}", *parts]) + "\n"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) + "."


def _field(field: Field[Any]) -> str:
    return f"- `{field.name}`{_of_type(field)}: {field.sentence}"


def _key(field: Field[Any]) -> tuple[str, str, str]:
    return field.name, field.sentence, field.unit


def _shared() -> list[Field[Any]]:
    """The fields that many lists have."""
    fields = [field for kind in _KINDS for field in kind.fields.values()]
    counts = Counter(map(_key, fields))
    first = {_key(field): field for field in reversed(fields)}
    return [first[key] for key, count in counts.items() if count >= _SHARED_BY]


def _is_plain(name: str, sentence: str, of: str) -> bool:
    """Does the name say the sentence, too? ``of`` is what the list or bean is about."""
    known = f"{name} {of} number".lower()
    words = [word for word in _WORD.findall(sentence.lower()) if len(word) > 1 and word not in _EMPTY_WORDS]
    return all(word.removesuffix("es") in known or word.removesuffix("s") in known for word in words)


def _of_type(field: Field[Any]) -> str:
    """Its unit or type, where that is not plain."""
    shown = "" if field.unit in _COUNTED else field.unit or _TYPES[field.type]
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
    same = [
        name
        for name, one in kind.attributes.items()
        if fields.get(name.lower()) == one.sentence or _is_plain(name, one.sentence, f"{kind.component} setting")
    ]
    named = [_names(same) + "\n"] if same else []
    others = [f"- `{name}`: {one.sentence}" for name, one in kind.attributes.items() if name not in same]
    return f"### Attributes: {kind.component}\n\n" + "\n".join([*named, *others]) + "\n"
