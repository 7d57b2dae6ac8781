"""Describes damage of a journal for people: its cost, by name and count, and what can be done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from artemis_py.storage.journal.index import Index
from artemis_py.storage.recovery.examination import Examined
from artemis_py.storage.recovery.missing_files import PAGE
from artemis_py.terminal_output import many

_NAMES_SHOWN: Final = 20


def damage_lines(examined: Examined, directory: str) -> list[str]:
    """A line for each problem and one summary; empty if there is no problem."""
    lines = [f"warning: {directory}/{damage}" for damage in examined.damages]
    lines += [f"warning: {directory}/{fault}" for fault in (*examined.stored.faults, *examined.copy_faults)]
    if examined.restored:
        lines.append(f"warning: restored from the copy of bindings: {_some(examined.restored)}")
    damaged = [damage for damage in examined.damages if not damage.torn]
    if damaged:
        files = len({damage.name for damage in damaged})
        lines.append(
            f"warning: DAMAGE in {many(len(damaged), 'place')} of {many(files, 'journal file')}: at most "
            f"{many(examined.lost_records, 'record')} lost. A message whose record is lost is gone; a message whose "
            f"acknowledgement is lost is delivered again. Copies of the damaged files are in {directory}, named "
            "quarantined-…"
        )
    lines += orphan_lines(examined)
    return lines


def orphan_lines(examined: Examined) -> list[str]:
    """Lines about messages of unknown queues."""
    return [
        f"warning: queue number {queue_id} is dropped with {many(count, 'message')}: its name is lost"
        for queue_id, count in examined.orphans.items()
    ]


def loss_lines(examined: Examined, directory: str, file: str) -> list[str]:
    """Why the broker of a configuration file does not start, what would remain, and what can be done."""
    lacking = [directory] if examined.reasons else []
    lacking += [str(one.directory) for one in examined.absent]
    verb = "lacks" if len(lacking) == 1 else "lack"
    return [
        f"the broker does not start: {' and '.join(lacking)} {verb} more than a broker may give up by itself",
        *(f"  {loss}" for loss in examined.losses),
        *(f"  {damage}" for damage in examined.damages if not damage.torn),
        f"  without the losses there would be {what_is_left(examined)}",
        "nothing was changed. What you can do:",
        *_next_steps(examined, directory, file),
    ]


def _next_steps(examined: Examined, directory: str, file: str) -> list[str]:
    steps = [f"mount or restore {one.directory} as it was, and start again" for one in examined.absent]
    if examined.reasons:
        steps.append("restore the files from a copy, if there is one, and start again")
    options = "".join(f" --{'paging' if one.kind == PAGE else 'large'} {one.directory}" for one in examined.absent)
    steps.append(f"artemis-py journal verify {directory}{options}        checks each file")
    if examined.reasons:
        repair = f"artemis-py journal repair {directory}"
        steps.append(f"{repair}        shows what a clean journal would have; with --write, writes it")
    does = "starts without the losses" if examined.absent else "does the same and starts"
    steps.append(f"artemis-py run {file} --accept-loss    {does}")
    return [f"  {step}" for step in steps]


def messages_by_queue(index: Index) -> dict[int, int]:
    """How many messages each known queue has, in memory and in pages."""
    counts = dict.fromkeys(index.queues, 0)
    for message_id, segment in index.home.items():
        for queue_id in segment.live[message_id].queue_ids:
            if queue_id in counts:
                counts[queue_id] += 1
    for page in index.pages.pages():
        for queue_id in page.durable:
            if queue_id in counts:
                counts[queue_id] += max(index.pages.left_of(queue_id, page), 0)
    return counts


def what_is_left(examined: Examined) -> str:
    """How many messages remain on which queues."""
    index = examined.index
    counts = messages_by_queue(index)
    for absent in examined.absent:
        for queue_id, count in absent.messages.items():
            counts[queue_id] -= count
    shown = [f"{index.queues[queue_id].get('name', '?')}: {count}" for queue_id, count in counts.items()]
    names = f" ({_some(shown)})" if shown else ""
    return f"{many(sum(counts.values()), 'message')} on {many(len(counts), 'durable queue')}{names}"


def _some(names: Iterable[str]) -> str:
    found = list(names)
    more = len(found) - _NAMES_SHOWN
    return ", ".join(found[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
