"""Equal filters are asked once for a message, and what a message costs is known before it is published. Many selectors
are asked over several turns: for a SEND, and for a COMMIT before anything of it happens.
"""

from __future__ import annotations

import pytest

from artemis_py.core.addresses.address import PlanCost
from artemis_py.core.addresses.batch import FilterResults
from artemis_py.core.budget import Budget
from artemis_py.message import Message
from artemis_py.selector import compile_expression, compile_selector
from tests.kit.bench import Bench
from tests.kit.core import entry_of

DIFFERENT = "color <> 'color %'"
SEND = b"SEND\ndestination:/topic/t\ncolor:%b\n\n\0"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that selectors look up from here on."""
    names: list[str] = []
    lookup = Message.lookup
    monkeypatch.setattr(Message, "lookup", lambda self, name: names.append(name) or lookup(self, name))
    return names


def subscribers(bench: Bench, count: int, selector: str, topic: str = "t", names: str = "s") -> None:
    """So many clients s0, s1, …, each with the selector, in which ``%`` is its number."""
    for number in range(count):
        choice = f"selector:{selector.replace('%', str(number))}"
        bench.write(f"{names}{number}", "SUBSCRIBE", "id:1", f"destination:/topic/{topic}", choice)


@pytest.mark.interpreted
@pytest.mark.parametrize("count", [1, 3])
def test_equal_filters_of_many_queues_are_asked_once(asked: list[str], count: int) -> None:
    bench = Bench(core="")
    subscribers(bench, 50, "color = 'red'")
    bench.client("sender")
    asked.clear()
    bench.client("sender").send(SEND % b"red" * count)
    assert asked == ["color"] * count
    got = [len(client.collect()) for name, client in bench.clients.items() if name != "sender"]
    assert got == [count] * 50


@pytest.mark.interpreted
def test_equal_filters_of_diverts_and_queues_are_asked_once(asked: list[str]) -> None:
    diverts = "".join(
        f"<divert name='d{number}'><address>t</address><forwarding-address>o{number}</forwarding-address>"
        "<filter string=\"color='red'\"/></divert>"
        for number in range(5)
    )
    bench = Bench(core=f"<diverts>{diverts}</diverts>")
    subscribers(bench, 5, "color = 'red'")
    bench.client("sender")
    asked.clear()
    bench.client("sender").send(SEND % b"red")
    assert asked == ["color"]


@pytest.mark.interpreted
def test_one_message_for_many_different_filters_is_asked_about_over_several_turns(asked: list[str]) -> None:
    """Others have their turns meanwhile; who comes meanwhile is asked, too."""
    bench = Bench(core="")
    subscribers(bench, 60, DIFFERENT)
    bench.client("sender")
    late = bench.client("late")
    bench.world.turns.units = 40
    bench.world.together = True
    asked.clear()
    bench.client("sender").send(SEND % b"red")
    most = 0
    for turn in range(200):
        before = len(asked)
        bench.world.turns.run()
        most = max(most, len(asked) - before)
        if turn == 1:
            late.send(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:color = 'red'\n\n\0")
    assert len(asked) == 61
    assert most <= 40
    bench.world.together = False
    bench.world.settle()
    got = [len(client.collect()) for name, client in bench.clients.items() if name != "sender"]
    assert got == [1] * 61


def test_a_message_is_sent_over_several_turns_with_receipt_and_expiry() -> None:
    bench = Bench(core="")
    subscribers(bench, 60, DIFFERENT)
    bench.client("sender")
    bench.world.turns.units = 40
    bench.client("sender").send(
        b"SEND\ndestination:/topic/t\ncolor:red\nexpires:9999999999999\nreceipt:r\n\nfirst\0"
        b"SEND\ndestination:/topic/t\ncolor:red\nreceipt:s\n\nsecond\0"
    )
    frames = bench.client("sender").collect()
    assert [frame.command for frame in frames] == ["RECEIPT", "RECEIPT"]
    for name, client in bench.clients.items():
        if name != "sender":
            assert [frame.body for frame in client.collect()] == [b"first", b"second"]


def test_an_answer_is_kept() -> None:
    one, other = compile_selector("color = 'red'"), compile_selector("color='red'")
    filter_results = FilterResults(entry_of(color="red").message)
    assert filter_results.of(None)
    assert filter_results.of(one)
    filter_results.message = entry_of(color="blue").message
    assert filter_results.of(other), "it was asked again"
    assert not FilterResults(entry_of(color="blue").message).of(other)


def test_asking_ahead_ends_with_the_budget() -> None:
    cost = PlanCost()
    for number in range(50):
        cost.add(compile_selector(f"color = '{number}'"))
    filter_results = FilterResults(entry_of(color="red").message)
    budget = Budget()
    turns = 0
    done = False
    while not done:
        budget.refill(20)
        done = filter_results.ask_ahead(cost.programs, budget, 10)
        assert budget.left > 0
        turns += 1
    assert 5 <= turns <= 12


def test_cost_of_a_plan() -> None:
    cost = PlanCost()
    cost.add(None)
    assert (cost.of(10**6), cost.of_all([entry_of(color="red").message] * 3)) == (1, 3)
    for _ in range(9):
        cost.add(None)
    assert cost.of(10**6) == 10
    one, other = compile_selector("color = 'red'"), compile_selector("color='red'")
    cost.add(one)
    once = cost.of(0)
    cost.add(other)
    assert cost.of(0) == once + 1, "one more queue, but no selector that was not asked before"
    cost.add(compile_selector("color LIKE '%red%'"))
    assert cost.of(2048) > cost.of(0)


def test_an_expression_is_evaluated_for_each_queue_that_is_ordered_by_it() -> None:
    """Not once as a selector is, and also when all selectors were asked before."""
    expression = compile_expression("+".join(["a"] * 40))
    cost = PlanCost()
    cost.add(None)
    for count in (1, 2):
        cost.add(None, expression)
        assert cost.of(0) == count + 1 + count * expression.units
        assert cost.places_of(8) == 1 + count + 7 * (1 + count) // 8 + 8 * count * expression.units
    assert cost.of(2048) > cost.of(0)
    bytes_alone = cost.units_per_kb
    cost.add(compile_selector("color = 'red'"))
    assert cost.units_per_kb > bytes_alone
    assert cost.places_of(8) == 8 * 4 + 8 * 2 * expression.units


@pytest.mark.parametrize("queue_count", [2, 10, 100])
@pytest.mark.parametrize("selector", ["", "color LIKE '%red%'"])
def test_messages_published_together_cost_less_than_one_by_one(queue_count: int, selector: str) -> None:
    """A topic with ten subscribers, and 64 KiB of small messages in a turn: all of them are published at once."""
    cost = PlanCost()
    for _ in range(queue_count):
        cost.add(None)
    if selector:
        cost.add(compile_selector(selector))
    messages = [entry_of(color="red").message] * 400
    together, alone = cost.of_all(messages), sum(cost.of(one.head.size_bytes) for one in messages)
    assert together < alone
    assert cost.of_all(messages[:1]) == cost.of(messages[0].head.size_bytes)
    for units in (0, cost.of(0) - 1, cost.of_all(messages) // 2, cost.of_all(messages) - 1, cost.of_all(messages)):
        count = cost.affordable(units, (one.head.size_bytes for one in messages), len(messages))
        assert not count or cost.of_all(messages[:count]) <= units
        assert count == len(messages) or cost.of_all(messages[: count + 1]) > units
    assert count == len(messages)


# ---- a COMMIT --------------------------------------------------------------------------------------------------------


SELECTORS = 30
SENDS = 20
UNITS = 60
COMMIT = b"COMMIT\ntransaction:x\nreceipt:c\n\n\0"


def kept(bench: Bench, count: int = SENDS, destinations: tuple[str, ...] = ("/topic/t",)) -> None:
    """A transaction with so many messages, to the destinations by turns."""
    sender = bench.client("sender")
    bench.write("sender", "BEGIN", "transaction:x")
    for number in range(count):
        destination = destinations[number % len(destinations)]
        sender.send(f"SEND\ndestination:{destination}\ntransaction:x\ncolor:red\n\n{number}\0".encode())
    assert sender.collect() == []


@pytest.mark.interpreted
def test_a_commit_asks_selectors_over_several_turns_and_each_once(asked: list[str]) -> None:
    bench = Bench(core="")
    subscribers(bench, SELECTORS, DIFFERENT)
    kept(bench)
    late = bench.client("late")
    other = bench.client("other")
    bench.world.turns.units = UNITS
    bench.world.together = True
    asked.clear()
    bench.client("sender").send(COMMIT)
    other.send(b"SEND\ndestination:/queue/q\nreceipt:o\n\n\0")
    most = turn = 0
    while len(asked) < SENDS * SELECTORS:
        before = len(asked)
        bench.world.turns.run()
        assert len(asked) > before, "each turn asks some"
        most = max(most, len(asked) - before)
        turn += 1
        if turn == 3:
            assert "RECEIPT" in [frame.command for frame in other.collect()], "others have their turns"
            assert not bench.got("s0"), "nothing has happened yet"
            late.send(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:color = 'red'\n\n\0")
    assert most <= UNITS
    bench.world.together = False
    bench.world.settle()
    assert len(asked) == SENDS * (SELECTORS + 1), "who came meanwhile was asked, and everybody once"
    expected = [str(number) for number in range(SENDS)]
    assert all(bench.got(name) == expected for name in ("late", *(f"s{number}" for number in range(SELECTORS))))
    assert bench.client("sender").collect()[-1].command == "RECEIPT"


def test_who_subscribes_without_end_keeps_no_commit_waiting() -> None:
    bench = Bench(core="")
    bench.write("s", "SUBSCRIBE", "id:1", "destination:/topic/t", "selector:color = 'red'")
    kept(bench)
    bench.client("busy")
    bench.world.turns.units = UNITS
    bench.world.together = True
    bench.client("sender").send(COMMIT)
    for number in range(1000):
        selector = f"color <> '{number}'"
        bench.client("busy").send(f"SUBSCRIBE\nid:{number}\ndestination:/topic/t\nselector:{selector}\n\n\0".encode())
        bench.world.turns.run()
        got = bench.got("s")
        if got:
            break
    assert len(got) == SENDS


def test_queues_that_refuse_are_asked_with_what_is_known() -> None:
    """Of one that is too small nothing comes to any other."""
    bench = Bench(
        core=(
            "<addresses><address name='t'><multicast>"
            "<queue name='small' overflow-policy='REJECT' max-depth-messages='3'>"
            "<filter string=\"color='red'\"/></queue></multicast></address></addresses>"
        )
    )
    subscribers(bench, SELECTORS, DIFFERENT)
    bench.world.turns.units = UNITS
    kept(bench, 4)
    bench.client("sender").send(COMMIT)
    (error,) = bench.client("sender").collect()
    assert error.command == "ERROR"
    assert "small" in (error.header("message") or "")
    assert not bench.got("s0")


def test_a_commit_for_destinations_by_turns() -> None:
    bench = Bench(core="")
    for topic in "tu":
        subscribers(bench, SELECTORS, DIFFERENT, topic, topic)
    bench.world.turns.units = UNITS
    kept(bench, SENDS, ("/topic/t", "/topic/u"))
    bench.client("sender").send(COMMIT)
    assert bench.got("t0") == [str(number) for number in range(0, SENDS, 2)]
    assert bench.got(f"u{SELECTORS - 1}") == [str(number) for number in range(1, SENDS, 2)]


@pytest.mark.parametrize(("places_max", "command"), [(SENDS * SELECTORS, "RECEIPT"), (SENDS * SELECTORS - 1, "ERROR")])
def test_a_transaction_meets_so_many_queues_only(places_max: int, command: str) -> None:
    bench = Bench(core="", acceptor=f"maxTransactionPlaces={places_max}")
    subscribers(bench, SELECTORS, DIFFERENT)
    kept(bench)
    bench.client("sender").send(COMMIT)
    answer = bench.client("sender").collect()[-1]
    assert answer.command == command
    assert len(bench.got("s0")) == (SENDS if command == "RECEIPT" else 0)
    if command == "ERROR":
        told = answer.header("message") or ""
        assert f"go to {SENDS * SELECTORS} queues" in told
        assert "maxTransactionPlaces" in told


@pytest.mark.interpreted
def test_copies_for_costly_addresses_end_a_turn(asked: list[str]) -> None:
    """What a divert copies costs what the selectors at its other end cost."""
    divert = "<divert name='d'><address>orders</address><forwarding-address>t</forwarding-address></divert>"
    bench = Bench(core=f"<diverts>{divert}</diverts>")
    subscribers(bench, SELECTORS, DIFFERENT)
    sender = bench.client("sender")
    bench.world.turns.units = UNITS
    bench.world.together = True
    asked.clear()
    sender.send(b"SEND\ndestination:orders\ndestination-type:MULTICAST\ncolor:red\n\nx\0" * SENDS)
    most = 0
    for _ in range(SENDS):
        before = len(asked)
        bench.world.turns.run()
        most = max(most, len(asked) - before)
    bench.world.together = False
    bench.world.settle()
    assert len(asked) == SENDS * SELECTORS
    assert most <= 4 * SELECTORS
    assert len(bench.got("s0")) == SENDS
