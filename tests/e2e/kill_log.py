"""The retained log beside the ledger: does it tell of everything that clients were promised, once each?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from artemis_py.message import LargeBody, Message
from artemis_py.storage.format.log_events import Changed, Published, Settled
from artemis_py.storage.format.reader import LogReader
from tests.e2e.kill_ledger import Key, Ledger


def problems_of_log(folder: Path, ledger: Ledger) -> list[str]:
    """What the log of a run lacks, has twice or has though nobody sent it; empty when it agrees with the ledger."""
    log = LogReader([folder / "kept", folder / "journal"], bodies=[folder / "large"])
    published, settled = told_by(log)
    problems = [f"damage in the log: {damage}" for damage in log.damages if not damage.torn]
    for key, fate in ledger.fates.items():
        if (fate.promised or fate.seen) and not published[key]:
            problems.append(f"{key} is not in the log")
        if fate.settled_round and not settled[key]:
            problems.append(f"the acknowledgement of {key} is not in the log")
    problems += [f"{key} is {count} times in the log" for key, count in published.items() if count > 1]
    problems += [f"{key} is settled {count} times in the log" for key, count in settled.items() if count > 1]
    problems += [f"{key} is in the log and was never sent" for key in published if key not in ledger.fates]
    return problems


def told_by(log: LogReader) -> tuple[Counter[Key], Counter[Key]]:
    """How often each message was published and settled, by queue."""
    queues: dict[int, str] = {}
    texts: dict[int, tuple[str, int, int]] = {}
    published: Counter[Key] = Counter()
    settled: Counter[Key] = Counter()
    for event in log.events():
        match event:
            case Changed(kind="queue", fields=fields):
                queues[fields["id"]] = fields["name"]
            case Published(kept=kept):
                producer, number, group, _ = body_of(log, kept.message).split(b" ", 3)
                texts[kept.message.id] = (producer.decode(), int(number), int(group))
                published.update(Key(queues[queue_id], *texts[kept.message.id]) for queue_id in kept.queue_ids)
            case Settled(queue_id=queue_id, message_ids=message_ids):
                settled.update(Key(queues[queue_id], *texts[message_id]) for message_id in message_ids)
    return published, settled


def body_of(log: LogReader, message: Message) -> bytes:
    """A message's body, wherever it is; with retention it has to be somewhere."""
    body = message.body
    if not isinstance(body, LargeBody):
        return body
    path = log.body_path(body)
    assert path is not None, f"the log speaks of body {body.number:016x} of message {message.id}, which is nowhere"
    found = path.read_bytes()
    assert len(found) == body.size_bytes, path
    return found
