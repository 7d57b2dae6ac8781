"""A file is changed while messages wait: the broker is killed, and the next start finds another broker.xml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.edited import text_of
from tests.e2e.management.told import Told, operated
from tests.kit.forks import run_text
from tests.kit.process import WAIT_S

pytestmark = pytest.mark.e2e

_UNWATCHED: Final = (
    "<configuration-file-refresh-period>-1</configuration-file-refresh-period>"
    "<address-queue-scan-period>50</address-queue-scan-period>"
    "<message-expiry-scan-period>50</message-expiry-scan-period>"
)
_COUNT: Final = 5
_PAGES: Final = "<max-size-messages>2</max-size-messages><page-size-bytes>16K</page-size-bytes>"


def on(name: str, *queues: str, kind: str = "anycast") -> str:
    return f'<address name="{name}"><{kind}>{"".join(queues)}</{kind}></address>'


def queue(name: str = "q", more: str = "", inside: str = "") -> str:
    return f'<queue name="{name}" {more}>{inside}</queue>'


def setting(inside: str, match: str = "#") -> str:
    return f'<address-setting match="{match}">{inside}</address-setting>'


NOT_DURABLE: Final = queue(inside="<durable>false</durable>")
FORCE: Final = "<config-delete-queues>FORCE</config-delete-queues>"
FORCE_ADDRESSES: Final = "<config-delete-addresses>FORCE</config-delete-addresses>"
OTHER: Final = on("other", queue("other"))


@dataclass
class Row:
    """Five messages on q are there, and then the file declares ``after``. ``left``: the messages of each queue then.
    ``address``: where q is. ``told``: what the log says of q at the start; empty: nothing.
    """

    after: str
    left: Mapping[str, int] = field(default_factory=lambda: {"q": _COUNT})
    address: str = "a"
    told: str = ""
    settings: str = ""
    settings_after: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


config = partial(text_of, core=_UNWATCHED, persistent=True)
MOVED: Final = "it stays on address a, with its 5 messages"
ROWS: Final = {
    "other address": Row(on("b", queue()), told=MOVED),
    "other address, with pages": Row(on("b", queue()), told=MOVED, settings=setting(_PAGES)),
    "other address, scheduled": Row(on("b", queue()), told=MOVED, headers={"AMQ_SCHEDULED_DELAY": "1000000"}),
    "both addresses": Row(on("a") + on("b", queue()), told=MOVED),
    "two addresses": Row(on("b", queue()) + on("a", queue()), told=MOVED),
    "other address, multicast": Row(on("b", queue(), kind="multicast"), told=MOVED),
    "other address, FORCE": Row(on("b", queue()), {"q": 0}, "b", settings=setting(FORCE), told="killed=5"),
    "other address, FORCE for addresses": Row(
        on("b", queue()), {"q": 0}, "b", settings=setting(FORCE_ADDRESSES), told="killed=5"
    ),
    "not durable": Row(on("a", NOT_DURABLE), told="it stays durable, with its 5 messages"),
    "not durable on another address": Row(on("b", NOT_DURABLE), told=MOVED),
    "multicast": Row(on("a", queue(), kind="multicast")),
    "filter": Row(on("a", queue(inside="<filter string=\"colour = 'red'\"/>"))),
    "standard": Row(on("a", queue(more='queue-type="standard"'))),
    "two levels": Row(on("a", queue(more='queue-type="priority" priority-levels="2"'))),
    "sort key": Row(on("a", queue(more='sort-key="rank"'))),
    "last value, one key": Row(
        on("a", queue(more='last-value-key="k"')),
        {"q": 1},
        headers={"k": "one"},
        told="4 of its 5 messages give way",
    ),
    "last value, no key": Row(on("a", queue(more='last-value-key="k"'))),
    "smaller ring": Row(on("a", queue(more='ring-size="3"')), {"q": 3}, told="2 of its 5 messages give way"),
    "default ring": Row(
        on("a", queue()),
        {"q": 3},
        settings_after=setting("<default-ring-size>3</default-ring-size>"),
        told="2 of its 5 messages give way",
    ),
    "smaller ring, with pages": Row(
        on("a", queue(more='ring-size="1"')), {"q": 4}, settings=setting(_PAGES), told="1 of its 5 messages gives way"
    ),
    "smaller depth": Row(
        on("a", queue(more='overflow-policy="RING" max-depth-messages="3"')),
        {"q": 3},
        told="2 of its 5 messages give way",
    ),
    "max-message-ttl": Row(
        on("a", queue(more='max-message-ttl="1"')), {"q": 0}, told="5 of its 5 messages are too old and expire"
    ),
    "default-max-message-ttl": Row(
        on("a", queue()),
        {"q": 0},
        settings_after=setting("<default-max-message-ttl>1</default-max-message-ttl>"),
        told="5 of its 5 messages are too old and expire",
    ),
    "expiration": Row(
        on("a", queue(more='expiration="1"')), {"q": 0}, told="5 of its 5 messages are too old and expire"
    ),
    "expiration, own time to live": Row(
        on("a", queue(more='expiration="1"')), headers={"AMQ_SCHEDULED_DELAY": "0", "expires": "4000000000000"}
    ),
    "max-message-ttl, with pages": Row(
        on("a", queue(more='max-message-ttl="1"')),
        {"q": 0},
        settings=setting(_PAGES),
        told="3 messages in pages, not looked at yet, will expire if too old",
    ),
    "smaller depth, reject": Row(on("a", queue(more='overflow-policy="REJECT" max-depth-messages="3"'))),
    "smaller address": Row(
        on("a", queue()),
        settings_after=setting(
            "<max-size-messages>1</max-size-messages><address-full-policy>DROP</address-full-policy>"
        ),
    ),
    "pages no more": Row(
        on("a", queue()),
        settings=setting(_PAGES),
        settings_after=setting("<address-full-policy>DROP</address-full-policy>"),
    ),
    "purge": Row(on("a", queue(more='purge-on-no-consumers="true"'))),
    "max-consumers": Row(on("a", queue(more='max-consumers="0"'))),
    "exclusive": Row(on("a", queue(more='exclusive="true"'))),
    "auto-delete": Row(
        on("a", queue()), settings_after=setting("<auto-delete-created-queues>true</auto-delete-created-queues>")
    ),
    "auto-delete with messages": Row(
        on("a", queue()),
        settings_after=setting(
            "<auto-delete-created-queues>true</auto-delete-created-queues>"
            "<auto-delete-queues-message-count>-1</auto-delete-queues-message-count>"
        ),
    ),
    "address without queues": Row(on("a")),
    "address of another kind": Row(on("a", kind="multicast")),
    "no address": Row(""),
    "renamed": Row(on("a", queue("r")), {"q": _COUNT, "r": 0}),
    "removed, FORCE": Row("", {}, settings=setting(FORCE), told="killed=5"),
    "removed, FORCE for addresses": Row("", {}, settings=setting(FORCE_ADDRESSES), told="killed=5"),
    "wildcard address": Row(on("a.#", queue()), told=MOVED),
}


def counts(it: Told) -> dict[str, int]:
    return {name: row["messageCount"] for name, row in it.broker.rows("queues").items() if name != "other"}


def fill(it: Told, headers: Mapping[str, str] | None = None, name: str = "") -> None:
    own = {"destination": scoped(name, "a::q"), "persistent": "true", **(headers or {})}
    with it.client() as sender:
        for number in range(_COUNT):
            sender.ask("SEND", {"rank": str(number), **own}, b"x" * 2000)


def scoped(name: str, text: str) -> str:
    """A text about the address a, b, and the queues on them, with names that only this row has."""
    place = re.sub(r"\W+", "-", name) + "." if name else ""
    return re.sub(r'((?:name|match)="|queue |queue=|address |::|^)(?=[abqr]\b|#)', rf"\1{place}", text)


def lines_of(it: Told, name: str, words: str) -> list[str]:
    """The lines of the log about the row's queue that have these words."""
    own = [scoped(name, "queue=q "), scoped(name, "queue q")]
    return [line for line in it.broker.said.splitlines() if words in line and any(each in line for each in own)]


def test_nothing_durable_goes_without_a_word(tmp_path: Path) -> None:
    """The rows stand side by side in one file."""
    before = "".join(scoped(name, on("a", queue())) for name in ROWS)
    settings = "".join(scoped(name, row.settings) for name, row in ROWS.items())
    with operated(config(before, OTHER, settings=settings), tmp_path) as it:
        for name, row in ROWS.items():
            fill(it, row.headers, name)
        assert counts(it) == {scoped(name, "q"): _COUNT for name in ROWS}
        it.broker.kill()
    after = "".join(scoped(name, row.after) for name, row in ROWS.items())
    settings = "".join(
        scoped(name, row.settings if row.settings_after is None else row.settings_after) for name, row in ROWS.items()
    )
    left = {scoped(name, queue): count for name, row in ROWS.items() for queue, count in row.left.items()}
    for is_first in (True, False):
        silent: list[str] = []
        with operated(config(after, OTHER, settings=settings), tmp_path) as it:
            it.broker.eventually("the messages", lambda: counts(it), lambda seen: seen == left)
            found = it.broker.rows("queues")
            for name, row in ROWS.items():
                if "q" in row.left:
                    assert found[scoped(name, "q")]["address"] == scoped(name, row.address)
                # what is gone is told once, what stays with each start
                if row.told and (is_first or row.left == {"q": _COUNT}):
                    told = scoped(name, row.told)
                    it.broker.eventually(
                        f"{name}: {told}", partial(lines_of, it, name, told), lambda lines: lines != []
                    )
                else:
                    silent.append(name)
            assert [line for name in silent for line in lines_of(it, name, " CFG-")] == []
            with it.client() as sender:  # what gave way is written down before this
                sender.ask("SEND", {"destination": "other::other", "persistent": "true"}, b"x")
            it.broker.kill()


def test_a_journal_that_is_not_read_is_told_and_kept(tmp_path: Path) -> None:
    with operated(config(on("a", queue())), tmp_path) as it:
        fill(it)
        it.broker.kill()
    with operated(text_of(on("a", queue()), core=_UNWATCHED), tmp_path) as it:
        assert counts(it) == {"q": 0}
        assert "the journal in" in it.broker.said
        assert "is kept and not read" in it.broker.said
        assert "is kept and not read" in run_text(["check", str(it.file)], timeout=WAIT_S, folder=tmp_path).stdout
        it.broker.kill()
    with operated(config(on("a", queue())), tmp_path) as it:
        assert counts(it) == {"q": _COUNT}
        assert "is kept and not read" not in it.broker.said


# ---- what is said beforehand -----------------------------------------------------------------------


def pending(it: Told) -> int:
    """What waits for a restart, which the answer of the API, and the metric, say alike."""
    count = len(it.state["pendingRestart"])
    it.broker.await_metric(count, "artemis_config_pending_restart")
    return count


def test_a_reload_leaves_a_queue_with_messages_where_it_is_until_it_is_deleted(tmp_path: Path) -> None:
    with operated(config(OTHER + on("a", queue())), tmp_path) as it:
        fill(it)
        it.write(config(OTHER + on("b", queue())))
        said = it.command("diff", "--running").stdout
        assert "queue q: address a → b" in said
        assert "queue q (5 messages): it stays on address a, with its 5 messages" in said
        answer = it.reload()
        assert (answer["result"], len(answer["pendingRestart"])) == ("partly", 1)
        assert MOVED in answer["failures"][0]
        assert "artemis-py queue delete q" in answer["failures"][0]
        assert (counts(it), it.queue("q")["address"], pending(it)) == ({"q": 5}, "a", 1)
        assert MOVED in str(it.broker.api("/health/ready"))
        assert it.command("queue", "move", "q", "other").returncode == 0
        assert it.command("queue", "delete", "q", "--yes").returncode == 0
        assert it.reload()["result"] == "applied"
        assert (it.queue("q")["address"], it.queue("q")["life"], pending(it)) == ("b", "declared", 0)
        assert it.queue("other")["messageCount"] == _COUNT
        assert MOVED not in str(it.broker.api("/health/ready"))


@pytest.mark.parametrize("setting_name", ["config-delete-queues", "config-delete-addresses"])
def test_with_force_it_goes_with_its_messages_and_nothing_waits(setting_name: str, tmp_path: Path) -> None:
    force = setting(f"<{setting_name}>FORCE</{setting_name}>")
    with operated(config(on("a", queue()), settings=force), tmp_path) as it:
        fill(it)
        it.write(config(on("b", queue()), settings=force))
        said = it.command("diff", "--running").stdout
        assert "queue q (5 messages): deleted, with its messages" in said
        assert "needs a restart" not in said
        answer = it.reload()
        assert (answer["result"], answer["removedMessages"], answer["pendingRestart"]) == ("applied", 5, [])
        assert (counts(it), it.queue("q")["address"], pending(it)) == ({"q": 0}, "b", 0)


def test_a_queue_stays_durable_until_it_is_empty(tmp_path: Path) -> None:
    with operated(config(on("a", queue())), tmp_path) as it:
        fill(it)
        it.write(config(on("a", NOT_DURABLE)))
        said = it.command("diff", "--running").stdout
        assert "queue q (5 messages): it stays durable, with its 5 messages" in said
        assert it.reload()["result"] == "partly"
        assert "operation=reloadConfigurationFile" in it.broker.said
        assert "result=partly request" in it.broker.said, "the audit log says so, too"
        assert pending(it) == 1
        it.broker.kill()
    with operated(config(on("a", NOT_DURABLE)), tmp_path) as it:
        assert (counts(it), it.queue("q")["durable"], pending(it)) == ({"q": 5}, True, 1)
        assert "it stays durable, with its 5 messages" in str(it.broker.api("/health/ready"))
        it.write(config(on("a", queue())))
        assert it.reload()["result"] == "applied"
        assert (pending(it), "it stays durable" in str(it.broker.api("/health/ready"))) == (0, False)
        it.write(config(on("a", NOT_DURABLE)))
        it.reload()
        assert it.command("queue", "purge", "q", "--yes").returncode == 0
        it.reload()
        assert (it.queue("q")["durable"], pending(it)) == (True, 1)
        it.broker.kill()
    with operated(config(on("a", NOT_DURABLE)), tmp_path) as it:
        assert (it.queue("q")["durable"], pending(it)) == (False, 0)


def test_an_empty_queue_moves_with_a_start_and_stays_paused(tmp_path: Path) -> None:
    with operated(config(on("a", queue())), tmp_path) as it:
        fill(it)
        assert it.command("queue", "purge", "q", "--yes").returncode == 0
        assert it.command("queue", "pause", "q").returncode == 0
        it.broker.kill()
    for _ in range(2):
        with operated(config(on("b", queue())), tmp_path) as it:
            assert (counts(it), it.queue("q")["address"], it.queue("q")["paused"]) == ({"q": 0}, "b", True)
            assert (pending(it), " CFG-" in it.broker.said) == (0, False)
            it.broker.kill()


def test_what_waited_for_a_restart_waits_no_more_when_it_is_made_anew(tmp_path: Path) -> None:
    """Also a queue that an operator deletes, and one whose file goes back to what it was."""
    with operated(config(on("a", queue())), tmp_path) as it:
        it.write(config(on("a", queue(more='sort-key="rank"'))))
        it.reload()
        assert pending(it) == 1
        assert it.command("queue", "delete", "q", "--yes").returncode == 0
        it.reload()
        assert pending(it) == 0
        it.write(config(on("a", queue())))
        assert "needs a restart" in it.command("diff", "--running").stdout
        it.reload()
        assert pending(it) > 0
        it.write(config(on("a", queue(more='sort-key="rank"'))))
        assert "needs a restart" not in it.command("diff", "--running").stdout
        it.reload()
        assert pending(it) == 0


def test_a_queue_of_a_reload_is_declared_as_those_of_the_start(tmp_path: Path) -> None:
    with operated(config(on("a", queue())), tmp_path) as it:
        started = {name: it.queue("q")[name] for name in ("life", "declaredAt", "autoCreated")}
        it.write(config(on("a", queue()) + on("b", queue("r"))))
        it.reload()
        assert started["life"] == "declared"
        assert {name: it.queue("r")[name] for name in started} == started
        it.write(config("\n\n" + on("a", queue())))
        it.reload()
        line = int(started["declaredAt"].rpartition(":")[2])
        assert it.queue("q")["declaredAt"].endswith(f":{line + 2}")
        assert (it.queue("r")["life"], it.queue("r")["declaredAt"]) == ("created", None)


CHECKED: Final = {
    "as it is": (on("a", queue()), "", ""),
    "moved": (on("b", queue()), "", "queue q: it stays on address a, with its 5 messages"),
    "moved, FORCE": (on("b", queue()), setting(FORCE), "queue q (5 messages): deleted, with its messages"),
    "not durable": (on("a", NOT_DURABLE), "", "queue q: it stays durable, with its 5 messages"),
    "ring": (on("a", queue(more='ring-size="3"')), "", "queue q: 2 of its 5 messages give way at the start"),
    "time to live": (on("a", queue(more='max-message-ttl="1"')), "", "messages are too old and expire after the start"),
    "removed": ("", "", "queue q is not declared any more, and stays on address a, with its 5 messages"),
    "removed, FORCE": ("", setting(FORCE), "queue q (5 messages): deleted, with its messages"),
}


@pytest.mark.parametrize("settings", ["", setting(_PAGES)])
def test_check_reads_the_journal_and_tells_what_a_start_would_do(settings: str, tmp_path: Path) -> None:
    """Of a broker that runs, and of one that is stopped; and it changes nothing."""
    before = config(*(scoped(name, on("a", queue())) for name in CHECKED), settings=settings)
    after = "".join(scoped(name, addresses) for name, (addresses, _, _) in CHECKED.items())
    more = "".join(scoped(name, setting) for name, (_, setting, _) in CHECKED.items())
    with operated(before, tmp_path) as it:
        for name in CHECKED:
            fill(it, name=name)
        it.write(config(after, settings=settings + more))
        for is_running in (True, False):
            if not is_running:
                it.broker.kill()
            checked = run_text(["check", str(it.file)], timeout=WAIT_S, folder=tmp_path)
            assert checked.returncode == 0, checked.stderr
            for name, (_, _, told) in CHECKED.items():
                lines = [line for line in checked.stdout.splitlines() if scoped(name, "queue q") in line]
                if not settings and name == "time to live":
                    told = "queue q: 5 of its 5 messages are too old"  # noqa: PLW2901
                if not told or (settings and name == "ring"):  # three are in pages, which a ring does not count
                    assert lines == []
                    continue
                code = "loses-messages" if name in ("ring", "time to live") or "FORCE" in name else "kept-messages"
                assert any(scoped(name, told) in line and f"[{code}]" in line for line in lines), (name, checked.stdout)
    with operated(before, tmp_path) as it:
        assert counts(it) == {scoped(name, "q"): _COUNT for name in CHECKED}
