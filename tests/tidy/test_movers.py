"""A queue's contents alone move its counters; the rule is also shown bad examples."""

from __future__ import annotations

from tests.kit.sources import PACKAGE, python_files, shown
from tests.tidy.movers import moved_counters


def test_contents_alone_moves_counters() -> None:
    paths = [path for path in python_files(PACKAGE) if shown(path).startswith(f"{PACKAGE}/core/")]
    assert len(paths) > 50
    core = f"{PACKAGE}/core/"
    sources = {shown(path).removeprefix(core): path.read_text("utf-8") for path in paths}
    assert [text for file, source in sources.items() for text in moved_counters(file, source)] == []


def test_another_mover_is_found() -> None:
    source = "counters = contents.counters\ncounters.added += 1\nself._counters.killed = 2\n"
    source += "message.refs -= 1\nmessage.refs == 1\n"
    source += "contents.counters.leave_delivery(message)\ncontents.expiry.add(entry, 3)\ncontents.expiry.set_alarm()\n"
    assert moved_counters("x.py", source) == [
        "x.py:2: counters.added changes",
        "x.py:3: counters.killed changes",
        "x.py:4: message.refs changes",
        "x.py:6: counters.leave_delivery(…)",
        "x.py:7: expiry.add(…)",
    ]
    assert moved_counters("queue/messages.py", source) == []
    assert moved_counters("memory.py", "message.refs += 1\n") == []
