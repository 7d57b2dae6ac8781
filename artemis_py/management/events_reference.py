"""The section of docs/operations.md about events."""

from __future__ import annotations

from typing import Final

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
| `watch` | what else to tell of: see below; may be given up to 16 times |

Each event has an `event:` line with its kind and one `data:` line with a JSON object:

| event | when | data |
| --- | --- | --- |
| `hello` | first | `broker` (its name), `version`, `now` (epoch ms) |
| `notification` | something happened | `type`, `at` (epoch ms), and the fields of the type |
| `state` | first for each `watch`, and after changes were left out | `watch`, `at`, `data`: everything |
| `changes` | about once a second, if something changed | `watch`, `at`, `data`: what changed |
| `problem` | a `watch` cannot be told of, such as a queue that was deleted | `watch`, `at`, `error` |
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
- **After `problem`** the broker goes on trying. `state` comes when it can tell again.
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
  end.
"""
