"""docs/why.md, from the table of reasons."""

from __future__ import annotations

from typing import Final

from artemis_py.management.why.causes import CAUSES, QUESTIONS, Cause

_HEAD: Final = """\
# Why

When the broker does not do what you expect, ask it. Each answer has a word for the reason, a sentence with numbers, the
setting behind it with its value and line of `broker.xml`, and what helps.

```text
$ artemis-py why not-delivered orders
unwanted  consumer 1 (client-id desk, from 10.0.0.7:52736): it wants none of the 2 ready: its selector is x = 1
  remedy   Change the selector, or start a consumer that takes these messages.

redelivery-delay  1 message must wait for another attempt after a failed delivery: the first is due in 58.313 s
  setting  redelivery-delay = 60000 ms  (broker.xml:24 (address-setting #))
  remedy   Repair the consumer; a shorter redelivery-delay tries again sooner.
```

| command | asks |
|---|---|
| `artemis-py why not-delivered QUEUE` | why a queue delivers nothing (more); with `--message NUMBER`, why one message |
| `artemis-py why blocked ADDRESS` | why senders wait or are refused, and what would free it |
| `artemis-py why blocked-connection NUMBER` | what a client waits for |
| `artemis-py why dropped ADDRESS` (or a queue) | which messages were lost since the start, by cause |
| `artemis-py why dead QUEUE` | of a dead-letter queue: its messages by origin and cause; of another: what died |
| `artemis-py why slow` | what makes the broker slow, the worst first |
| `artemis-py why growing QUEUE` | what comes in and what each consumer settles (`--window` seconds), and what follows |
| `artemis-py trace MESSAGE-ID` | [the life of a message](#the-life-of-a-message), from the log |
| `artemis-py simulate FILE ADDRESS` | [when a configuration would page, block, drop or expire](#simulate) |

All but the last are [operations](operations.md) over HTTP. The first seven look at up to 10,000 messages, in steps that
clients do not notice. The words for reasons are also in the API, the operational log and metrics, such as
`artemis_blocked_senders{reason}`. Below, what helps is in italics, and further settings are in parentheses.
"""

_TAIL: Final = """\
## The life of a message

```text
$ artemis-py trace 24-1
2026-11-25T21:23:52.068Z  1  arrived      sent to orders, on orders, 48 bytes, priority 4  [10.0.0.7:48492 (user anna)]
2026-11-25T21:23:52.082Z  1  delivered    orders: sent to a consumer  [consumer 1 of 10.0.0.9:48514]
2026-11-25T21:23:52.083Z  1  failed       orders: delivery 1 failed: NACK  [consumer 1 of 10.0.0.9:48514]
2026-11-25T21:23:52.083Z  1  dead         orders: its last delivery failed  [consumer 1 of 10.0.0.9:48514]
2026-11-25T21:23:52.083Z  2  copied       copy of message 1 from orders (max_deliveries): sent to DLQ, on DLQ, 138 bytes
now                       2  there        DLQ: still there
```

- Name the message by the `message-id` of its MESSAGE frame, by the number after the dash, or by its headers:
  `--where "order = '17'"`. Copies that the broker makes (dead, expired, diverted) are included.
- The command asks a running broker: `GET /api/messages/NUMBER/life`, which the [console](console.md) shows, too. With
  `--where` it reads the broker's log over HTTP, with `--journal DIR …` the directories of a stopped broker.
- A request reads for 2 seconds (`seconds`, at most 10). If it has not the whole life, it says `isWhole: false`: ask
  again with `after=readTo` within a minute. The command does so by itself. `logBegan` says when the log begins,
  `lostParts` how many parts of it could not be read.
- The log has persistent messages on durable queues: with `journal-retention-directory` their whole past, with
  deliveries and consumers, else only what the journal still needs.

## Simulate

```text
$ artemis-py simulate broker.xml orders --in 5000/s --size 2KiB --consumers 3 --out 800/s each --for 2h
    0.0 s  start  5000/s of 2048 bytes for orders::orders, 3 consumers at 800/s each: 2400/s
    1.6 s  page   further messages go to pages, which grow by 19.6 GiB an hour (backlog 4,283 messages)
                  max-size-bytes 10485760 bytes, broker.xml:11
 3:05 min  fail   senders get an ERROR for 2600/s (backlog 481,927 messages)
                  page-limit-bytes 1073741824 bytes, broker.xml:12
2:00:00 h  end    36,000,000 offered; 17,280,000 acknowledged; 18,238,073 refused; …
```

With `--away 10m` consumers come after ten minutes. `--ttl` is the time to live that senders set, `--disk` the room for
pages. No broker runs: the command calculates. It knows `max-size-*`, `global-max-size`, `address-full-policy`,
`page-limit-*`, `page-full-policy`, `ring-size`, `max-depth-*` with its policy, the settings of expiry, `max-consumers`,
`exclusive`, `max-live-consumers`, `consumers-before-dispatch` and `slow-consumer-threshold`. It leaves out bursts,
windows of consumers, failed deliveries, groups, other addresses (they share `global-max-size`), and the speed of disk
and network, which `artemis-py perf` measures.
"""


def page() -> str:
    """The page."""
    parts = [_HEAD]
    for question, text in QUESTIONS.items():
        lines = [_line(cause) for cause in CAUSES.values() if cause.question == question]
        parts.append(f"## {text}\n\n" + "\n".join(lines) + "\n")
    return "\n".join([*parts, _TAIL])


def _line(cause: Cause) -> str:
    """The reason, what it means, and in italics what helps."""
    unnamed = ", ".join(f"`{name}`" for name in cause.settings if name not in cause.remedy)
    remedy = f" *{cause.remedy}*" if cause.remedy else ""
    return f"- `{cause.code}`: {cause.meaning}{remedy}{f' ({unnamed})' if unnamed else ''}"
