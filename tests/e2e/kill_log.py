"""The retained log beside the ledger: does it tell of everything that clients were promised, once each?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from artemis_py.message import LargeBody
from artemis_py.storage.format.log_events import Changed, Published, Settled
from artemis_py.storage.format.names import find_body
from artemis_py.storage.format.reader import LogReader
from tests.e2e.kill_actors import Seen, key_of
from tests.e2e.kill_ledger import Key, Ledger


def problems_of_log(folder: Path, ledger: Ledger, replays: Sequence[Seen] = ()) -> list[str]:
    """What the log of a run lacks, has twice or has though nobody sent it, and which replays did not show what it has;
    empty when all agree.
    """
    log = LogReader([folder / "kept", folder / "journal"])
    published: list[tuple[int, Key]] = []
    settled: Counter[Key] = Counter()
    queues: dict[int, str] = {}
    keys: dict[int, Key] = {}
    for event in log.events():
        match event:
            case Changed(kind="queue", fields=fields):
                queues[fields["id"]] = fields["name"]
            case Published(kept=kept):
                body = kept.message.body
                if isinstance(body, LargeBody):  # with retention it has to be somewhere
                    path = find_body(body.number, [folder / "large", *log.directories])
                    assert path is not None, f"body {body.number:016x} of message {kept.message.id} is nowhere"
                    body = path.read_bytes()
                key = keys[kept.message.id] = key_of("", body)
                published += [(event.lsn, key._replace(queue=queues[queue_id])) for queue_id in kept.queue_ids]
            case Settled(queue_id=queue_id, message_ids=message_ids):
                settled.update(keys[message_id]._replace(queue=queues[queue_id]) for message_id in message_ids)
    counts = Counter(key for _, key in published)
    problems = [f"damage in the log: {damage}" for damage in log.damages if not damage.torn]
    for key, fate in ledger.fates.items():
        if (fate.promised or fate.seen) and not counts[key]:
            problems.append(f"{key} is not in the log")
        if fate.settled_round and not settled[key]:
            problems.append(f"the acknowledgement of {key} is not in the log")
    problems += [f"{key} is {count} times in the log" for key, count in counts.items() if count > 1]
    problems += [f"{key} is settled {count} times in the log" for key, count in settled.items() if count > 1]
    problems += [f"{key} is in the log and was never sent" for key in counts if key not in ledger.fates]
    for seen in replays:
        there = [(lsn, key) for lsn, key in published if key.queue == seen.queue]
        shown = list(zip(seen.bookmarks, seen.keys, strict=True))
        if shown != there:
            problems.append(f"a replay of {seen.queue} showed {len(shown)} messages, the log has {len(there)}")
    return problems
