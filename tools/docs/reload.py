"""docs/reload.md: its tables say of each setting when a running broker uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from artemis_py.config.changes import (
    NOTHING,
    NOW,
    QUEUE_ATTRIBUTES,
    RESTART,
    WHEN_IDLE,
    of_address_setting,
    of_queue_attribute,
)
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import Setting, settings_of
from artemis_py.config.tables.queue_settings import COMPOSED, NAMES, always_waits, parts_of

_NOBODY: Final[frozenset[str]] = frozenset()
_WORDS: Final = {
    NOW: "at once",
    WHEN_IDLE: "at once while no consumer holds a message of its groups, else when it is empty and has no consumers",
    RESTART: "restart",
    NOTHING: "not used",
}

_SOMETIMES: Final = "at once; restart where it changes what the queue is composed of"

_DEFAULTS: Final = (
    "A default for queues (`default-…`) takes effect when the attribute would, on queues that do not set the "
    "attribute, unless it is named here:"
)
_BEFORE: Final = """\
# Reload

A running broker reads its configuration again when a file changes, and brings it into force. Connections, messages and
subscriptions stay.

```sh
artemis-py diff --running      # what would the file as it is now change, and for how many messages?
artemis-py broker reload       # bring it into force now; or kill -HUP, or wait a moment
artemis-py broker configuration
```

## When

- **When a file changes**: broker.xml, the files that it includes, `broker.properties`, and the files of an Artemis
  instance; also when another file (editors) or link (a ConfigMap of Kubernetes) replaces it. If the system does not
  report changes, the broker looks every `configuration-file-refresh-period` ms. -1 switches both off.
- **When you ask**: by SIGHUP, `artemis-py broker reload`, `POST /api/broker/reload`, or `reloadConfigurationFile` of
  Artemis' beans.

The files are checked as at a start, with keys of acceptors and ports. A broken file that was just written is read
again, because somebody may still be writing it.

## A broken edit changes nothing

- The operational log has a line `CFG-1002` for each problem, with file and line.
- `/health/ready` has a warning. The broker is still ready.
- `artemis-py broker configuration` shows the problems, when the file was read, and what waits for a restart.
- The metric `artemis_config_last_reload_successful` is 0, and an [alert](monitoring.md#artemisconfigurationrefused)
  fires. Others are `artemis_config_last_reload_success_timestamp_seconds`, `artemis_config_pending_restart`, and
  `artemis_config_reloads_total` by `result` (`applied`, `unchanged`, `refused`, `partly`).
- Listeners get the [notification](operations.md#notifications) `CONFIGURATION_REFUSED`.

A reload that was carried out has a line `CFG-1003` for each change (the first 50), then `CFG-1001`, and the
notification `CONFIGURATION_RELOADED`. If a part cannot be done, it stays as it was, the others go on, and the result is
`partly`, with the reason. If the broker is killed meanwhile, the next start does the rest.

## What is deleted

As in Artemis, the address-settings `config-delete-addresses`, `config-delete-queues` and `config-delete-diverts` of the
new file decide. With `OFF`, the default, nothing is deleted.

| removed from the file | with FORCE |
| --- | --- |
| an address | the address is deleted with all its queues and their messages, also queues that operators or clients \
made. An address that clients made stays, and so does one where a divert begins |
| a queue | the queue is deleted with its messages, if the file declared it before |
| a divert | the divert ends. With OFF it stays until the broker restarts. One that operators made stays |

**Only FORCE makes a reload lose messages.** Consumers of a deleted queue are disconnected with an ERROR that says so. A
queue that still has a consumer after 10 s stays; the reload reports it, and the next one tries again. If clients
connect again and `auto-create-queues` allows it, the queue is created again, empty. A start applies FORCE, too.

## What a start does to messages

A start deletes nothing durable either, except with FORCE. If the file changes, for a queue with messages,

| | the start |
| --- | --- |
| its address | leaves the queue as it was. With FORCE for the old address it deletes the queue with its messages, and \
creates it on the other |
| `durable`, to false | leaves it durable, with its messages |
| its name | leaves the old queue with its messages; the new one is empty |
| routing type, filter, `queue-type`, levels, sort key | puts the messages in the new order; a filter applies to new \
messages |
| to a smaller ring (`ring-size`, `default-ring-size`, or `max-depth-…` with RING) | drops the least messages beyond \
it (a reload drops none at once) |
| `last-value-key` | keeps the last of messages with the same value |
| `max-message-ttl`, `expiration` | lets messages expire that are too old |
| `max-size-…`, `address-full-policy`, `max-consumers`, `exclusive`, `purge-on-no-consumers`, `auto-delete-…` | keeps \
the messages |

- **A queue that was left as it was is named at each start and reload**: by a line `CFG-1002` with the place in the
  file, the number of messages, and what to do; a warning of `/health/ready`; `failures` and `pendingRestart` of
  `broker configuration`; `artemis_config_last_reload_successful` 0, `artemis_config_pending_restart` 1 for each.
- **What to do**: consume the messages, or move them (`artemis-py queue move`); then delete the queue and reload. A
  start makes a queue without messages as the file says; a paused one stays paused.
- **Dropped and expired messages** are in `CFG-1004`, with their number and the reason. A start does not read messages
  in pages, and gives the number of those that may be too old.
- **Before the start**, `artemis-py check` reads the journal and warns of all this, with numbers. `artemis-py diff
  --running` and `broker reload` do so for a running broker.

## What operators changed

- **Paused** queues stay paused.
- **`queue update`, `enable` and `disable`** of a declared queue last until the next reload or restart, even if the file
  was only touched. For other queues they last.
- **A ring-size** that an operator set stays until the file has another ring-size than before, also after a restart.
- **Queues, addresses and diverts that operators deleted** come back with the next reload or restart, if the file
  declares them. The reload reports it, and `artemis-py broker changes` before it. The same holds for changes to
  declared diverts.
- **Queues that operators or clients made** stay. If the file declares one, it becomes a declared queue, with exactly
  the attributes of the file.
- **Diverts and address-settings that operators made** (`divert create`, `settings set`) stay, also after a restart.
  Such address-settings take precedence over those of the file for the same match, until `settings remove`.
- **An attribute that is removed** from a declared queue has its default again.

## When a change is in force

| part | in force |
| --- | --- |
| addresses, queues, diverts | at once; the attributes of queues: see below |
| routing types of an address | at once; a type that its queues have stays, and the reload reports it |
| security-settings | at once, also for open sessions. Consumers go on, as in Artemis; [replays, browsers and open \
answers of HTTP](security.md#permissions) end with the permission |
| users and roles in files | without a reload, with the next login. If a user's password or roles change, or the user \
is removed, replays, browsers and open answers of HTTP end at once; other sessions go on |
| `users-file`, `authentication`, login.config | at once, for new logins; the same ends for users who may not log in \
any more |
| bridges | at once. A changed or removed one takes no more messages, and ends when those on the way are confirmed \
(`pending-ack-timeout`). Others keep their connections; one that an operator stopped stays stopped |
| acceptors | at once. A changed or removed one closes its connections; if host and port are the same, its socket \
stays open. Others keep their connections |
| keys and certificates | with `sslAutoReload` when the files change ([security.md](security.md)); else when the \
acceptor changes |
| everything else in `core` (directories, global limits, wildcards, …) | restart |

`artemis-py diff` and `broker configuration` list what waits for a restart.

A queue is composed once, of an order, an overflow policy and other parts. An attribute that would change these parts
waits for a restart. So does one that conflicts with what waits, such as `ring-size` while an `overflow-policy` is to be
removed."""

_AFTER: Final = """\
## Compare

```sh
artemis-py diff OLD NEW          # two files, or folders of instances
artemis-py diff --running        # what is in force in a broker, and its file as it is now
artemis-py diff --running --json
```

The exit code is 0 if nothing would change, 1 if something would, and 2 if a configuration is refused. With `--running`
the broker counts what would be affected: messages and consumers of deleted queues, queues deeper than their new
`ring-size` or `max-depth-messages`, queues that stay as they are while they have messages, addresses that would be
full, and queues that wait for a restart.
"""


def page() -> str:
    """Return the whole page."""
    of_queues = [_queue_row(row) for row in settings_of(QueueConfig).values()]
    known = {name.removeprefix("`"): when for name, when in of_queues}
    of_addresses = [
        (name, when)
        for name, when in (_address_row(row) for row in settings_of(AddressSettings).values())
        if known.get(name.removeprefix("`default-")) != when
    ]
    return "\n\n".join(
        (
            _BEFORE,
            "### Attributes of a queue",
            _groups(of_queues, "all others"),
            "### Settings of an address",
            _DEFAULTS,
            _groups(of_addresses, "all others that are not defaults for queues"),
            _AFTER,
        )
    )


def _groups(rows: Sequence[tuple[str, str]], others: str) -> str:
    """``others`` stands for all names that count at once."""
    names: dict[str, list[str]] = {}
    for name, when in rows:
        names.setdefault(when, []).append(name)
    del names[_WORDS[NOW]]
    names[_WORDS[NOW]] = [others]
    return "\n".join(f"- **{when[0].upper()}{when[1:]}**: {', '.join(found)}." for when, found in names.items())


def _queue_row(row: Setting) -> tuple[str, str]:
    effect, note = of_queue_attribute(row.attribute, _NOBODY)
    return f"`{row.name}`", _when(row.attribute, effect, note)


def _address_row(row: Setting) -> tuple[str, str]:
    effect, note = of_address_setting(row.attribute, _NOBODY)
    return f"`{row.name}`", _when(QUEUE_ATTRIBUTES.get(row.attribute, ""), effect, note)


def _when(attribute: str, effect: str, note: str) -> str:
    parts = [part.name for part in parts_of(attribute) if part in COMPOSED] if attribute in NAMES else []
    if effect == NOTHING or not parts:
        return _WORDS[effect] + (f", {note}" if note and effect == NOW else "")
    return _WORDS[RESTART] if always_waits(attribute) else _SOMETIMES
