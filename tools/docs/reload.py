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
    "A setting that is a default for queues counts for queues that do not set the attribute themselves, in the same "
    "way, unless it is named here:"
)
_BEFORE: Final = """\
# Reload

A running broker reads its configuration again when a file of it changes, and brings it into force. Connections,
messages and subscriptions stay.

```sh
artemis-py diff --running      # what would the file as it is now change, and for how many messages?
artemis-py broker reload       # bring it into force now; or kill -HUP, or just wait a moment
artemis-py broker configuration
```

## When

- **When a file changes**: broker.xml, the files that it includes, `broker.properties`, and the files of an Artemis
  instance; also when another file takes its place (editors) or a link is exchanged (a ConfigMap of Kubernetes). Where
  the system reports no changes, it looks every `configuration-file-refresh-period` ms. -1 switches both off.
- **On SIGHUP**, and by `artemis-py broker reload`, `POST /api/broker/reload`, or `reloadConfigurationFile` of Artemis'
  beans. These work with -1, too.

The files are checked as at a start, with keys of acceptors and ports. A file that was written a moment ago and makes
no sense is read again, because somebody may still be writing it.

## A broken edit changes nothing

- The operational log has a line `CFG-1002` for each problem, with file and line.
- `/health/ready` has a warning. The broker is still ready.
- `artemis-py broker configuration` shows the problems, when the file was read, and what waits for a restart.
- Metrics: `artemis_config_last_reload_successful` is 0. There are also
  `artemis_config_last_reload_success_timestamp_seconds`, `artemis_config_pending_restart`, and
  `artemis_config_reloads_total` by `result` (`applied`, `unchanged`, `refused`, `partly`). An
  [alert](monitoring.md#artemisconfigurationrefused) asks for the first.
- Listeners get the notification `CONFIGURATION_REFUSED`, or `CONFIGURATION_RELOADED` for a reload that was carried out
  ([operations.md](operations.md#notifications)).

`CFG-1001` ends each reload that was carried out, and `CFG-1003` tells each change (the first 50).

If one part of a reload cannot be done, it stays as it was, the others go on, and the result is `partly`, with the
reason. If the broker is killed meanwhile, the next start does the rest.

## What is deleted

The rules are Artemis'. `config-delete-addresses`, `config-delete-queues` and `config-delete-diverts` are
address-settings, and those of the new file count. With `OFF`, the default, nothing goes.

| removed from the file | goes with | and then |
| --- | --- | --- |
| an address | `config-delete-addresses` FORCE | all its queues go with their messages, also those that operators \
or clients made; the address, too. An address that clients made stays, and one where a divert begins |
| a queue | `config-delete-queues` FORCE | it goes with its messages. Only queues that the file declared before go |
| a divert | `config-delete-diverts` FORCE | it forwards nothing more. With OFF it stays until the broker \
restarts. One that operators made stays |

**FORCE is the only way in which a reload loses messages.** Consumers of a deleted queue are disconnected with an ERROR
that says so. They have 10 s to be gone, all together. A queue whose consumer is still there then stays; the reload
tells it and goes on, and the next one tries again. If clients connect again and `auto-create-queues` allows it, the
queue is created anew, empty.
A start applies FORCE, too, so an edit while the broker is stopped has the same result.

## What a start does to messages

A start with a changed file deletes nothing durable either, except with FORCE. In the file, of a queue with messages, is

| changed | and then |
| --- | --- |
| its address | it stays where it is, as it was, with its messages. With FORCE for the old address it is deleted with \
them, and made anew on the other |
| `durable`, to false | it stays durable, with its messages |
| its name | the old queue stays with its messages, on its address; the new one is empty |
| routing type, filter, `queue-type`, levels, sort key | the messages are in the new order; a filter counts for those \
that come |
| a smaller ring (`ring-size`, `default-ring-size`, or `max-depth-…` with RING) | the start drops the least messages \
beyond it. (A reload drops none at once) |
| `last-value-key` | of messages with the same value the start keeps the last |
| `max-message-ttl`, `expiration` | messages that are too old expire after the start |
| `max-size-…`, `address-full-policy`, `max-consumers`, `exclusive`, `purge-on-no-consumers`, `auto-delete-…` | the \
messages are there; the setting counts for what happens then |

- **A queue that stays is named at each start and each reload**: a line `CFG-1002` with the place in the file, the
  number of messages, and what to do; a warning of `/health/ready`; `failures` and `pendingRestart` of
  `broker configuration`; `artemis_config_last_reload_successful` 0, `artemis_config_pending_restart` 1 for each.
- **What to do**: consume the messages, or move them to another queue (`artemis-py queue move`); then delete the queue
  and reload. A queue without messages needs none of it: a start makes it as the file says. It stays paused if it was.
- **Messages that a start drops, and those that are too old for their queue**, are in `CFG-1004`, with their
  number and the reason. Messages in pages are not read at a start: their number is given where they may be too old.
- **Before**: `artemis-py check` reads the journal, if there is one, and warns of all this with numbers.
  `artemis-py diff --running` and `broker reload` say the same of a running broker.

## What operators changed

- **Paused** queues stay paused.
- **`queue update`, `enable` and `disable`** of a declared queue last until the next reload, or restart: then
  everything is as the file says, also if the file was only touched. Of other queues they last.
- **A ring-size** that an operator set stays until the file says another ring-size than before. (A restart keeps it,
  too. In Artemis each reload sets it back.)
- **Queues, addresses and diverts that operators deleted** come back if the file declares them, with the next reload or
  restart. The reload tells it, and `artemis-py broker changes` before it; so they do of a declared divert that an
  operator has changed.
- **Queues that operators or clients made** stay. If the file declares one, it becomes a declared queue, with exactly
  the attributes of the file.
- **Diverts and address-settings that operators made** (`divert create`, `settings set`) stay, also over a restart. Of a
  divert that the file declares, and of changes to one, the file counts again with the next reload that is carried out,
  or restart; address-settings of an operator count before those of the file for the same match, until
  `settings remove`. (Artemis forgets such address-settings at a reload, until the next restart.)
- A declared queue gets exactly what the file says: an attribute that is removed has its default again.

## When a change is in force

| part | in force |
| --- | --- |
| addresses, queues, diverts | at once; the attributes of queues: see below |
| routing types of an address | at once; a type of which it has queues stays, and the reload tells it |
| security-settings | at once, for sessions that are open, too. Who consumes already goes on, as in Artemis; \
[replays, browsers, and answers of HTTP that are under way](security.md#permissions) end with the right to them |
| users and roles in files | without a reload, with the next login: what is remembered of logins is forgotten. Of \
users whose password or roles have changed, or who are gone, replays, browsers and answers of HTTP that are \
under way end at once; other sessions go on |
| `users-file`, `authentication`, login.config | at once, for new logins; the same ends of users who are not let in \
as before |
| bridges | at once. One that has not changed keeps its connections. One that has changed or is gone takes no more \
messages, and ends when those on the way are confirmed (`pending-ack-timeout`); then the changed one connects. One \
that an operator has stopped stays so if it has not changed |
| acceptors | at once. One that has not changed keeps its connections. One that has changed or is gone closes them; \
if host and port are the same, its socket stays open meanwhile |
| keys and certificates | with `sslAutoReload` when the files change ([security.md](security.md)); otherwise when \
the acceptor changes |
| everything else in `core` (directories, global limits, wildcards, …) | restart |

`artemis-py diff` and `broker configuration` list what waits for a restart.

A queue is composed once, of an order, an overflow policy and other parts. An attribute that would change its
composition waits for a restart, and so does one that the queue may not have with what waits: `ring-size`, where an
`overflow-policy` is to go. All others are changed in place."""

_AFTER: Final = """\
## Compare

```sh
artemis-py diff OLD NEW          # two files, or folders of instances
artemis-py diff --running        # what is in force in a broker, and its file as it is now
artemis-py diff --running --json
```

The exit code is 0 if nothing would change, 1 if something would, and 2 if a configuration is refused. With `--running`
the broker counts what would be affected: messages and consumers of a queue that is deleted, queues deeper than their
new `ring-size` or `max-depth-messages`, queues that stay as they are while they have messages, addresses that are full
at once, and queues that wait for a restart.
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
            _groups(of_queues),
            "### Settings of an address",
            _DEFAULTS,
            _groups(of_addresses),
            _AFTER,
        )
    )


def _groups(rows: Sequence[tuple[str, str]]) -> str:
    names: dict[str, list[str]] = {}
    for name, when in rows:
        names.setdefault(when, []).append(name)
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
