"""Rows of AMPS (rows.py) about views as broker.xml declares them: what ``check`` refuses, what it warns of, and what
``explain`` shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.cli.explain import as_json, compose
from artemis_py.cli.main import main
from artemis_py.config.explain import explain
from tests.kit.bench import Bench
from tests.kit.documents import broker_xml, errors_of, load_core, warnings_of
from tests.kit.views import EU, EU_US, ONE, addresses, view

pytestmark = pytest.mark.wire


@pytest.mark.parametrize(
    ("core", "said"),
    [
        ("<persistence-enabled>false</persistence-enabled>" + addresses(view()), "without persistence-enabled"),
        (addresses(view(inside="<durable>false</durable>")), "is not durable"),
    ],
)
def test_A_02_what_a_view_reads_is_in_the_journal(core: str, said: str) -> None:
    (problem,) = errors_of(core)
    assert (problem.file, problem.line) == ("broker.xml", 3)
    assert said in problem.message
    assert problem.allowed


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("underlying-address=' '", "a non-blank text"),
        ("underlying-address=','", "names no address"),
        ("underlying-address='a,b'", "several underlying addresses and no default-publish-target"),
        ("underlying-address='a.#'", "a wildcard for underlying-address and no default-publish-target"),
        ("underlying-address='a.#' default-publish-target='a.*'", "not one of its underlying addresses"),
        ("underlying-address='a.#' default-publish-target='b'", "not one of its underlying addresses"),
        ("underlying-address='a' default-publish-target='work'", "not one of its underlying addresses"),
        ("underlying-address='work,a' default-publish-target='a'", "reads 'work', where nothing is published"),
        ("underlying-address='other'", "reads 'other', where nothing is published"),
        ("underlying-address='a.#,other' default-publish-target='a.b'", "reads 'other', where nothing is published"),
        ("underlying-address='#' default-publish-target='other'", "reads 'other', where nothing is published"),
    ],
)
def test_A_01_views_that_are_refused(attributes: str, said: str) -> None:
    other = view("underlying-address='x'", "other")
    problems = errors_of(addresses(f"\n{view(attributes)}\n{other}"))
    assert [problem.line for problem in problems] == [4]
    assert said in f"{problems[0].message} {problems[0].allowed}"


def test_A_01_a_circle_of_views_is_refused() -> None:
    one, two = view("underlying-address='two'", "one"), view("underlying-address='one'", "two")
    assert [problem.line for problem in errors_of(addresses(f"\n{one}\n{two}"))] == [4, 5]


def test_A_01_a_view_over_a_queue_that_takes_in_others_is_none_over_a_view() -> None:
    """What is sent to that queue's address is published there."""
    both = "underlying-address='orders.eu,orders.us' default-publish-target='orders.eu'"
    core = addresses(view(ONE), view(both, "orders.eu"))
    assert errors_of(core) == []
    bench = Bench(core=core)
    bench.send("a", to="/queue/orders.eu")
    assert (bench.count("work"), bench.count("orders.eu")) == (1, 1)


def test_A_01_the_home_of_a_view_is_refused_where_others_would_get_nothing() -> None:
    shared = f"<address name='work'><anycast>\n<queue name='work' {ONE}/><queue name='b'/></anycast></address>"
    (problem,) = errors_of(addresses(shared))
    assert problem.line == 4
    assert "queue 'b', which gets nothing" in problem.message
    (problem,) = errors_of(addresses(view(ONE, "work.#")))
    assert "on a wildcard address" in problem.message


@pytest.mark.parametrize(
    ("core", "said"),
    [
        (addresses(view("default-publish-target='a'")), "it has no effect"),
        (
            addresses(view(ONE), settings="<auto-create-addresses>false</auto-create-addresses>"),
            "reads 'orders.eu', which is not declared",
        ),
        (
            addresses(view(ONE)) + "<diverts><divert name='d'><address>work</address><forwarding-address>orders.eu"
            "</forwarding-address></divert></diverts>",
            "divert 'd' sees no message",
        ),
    ],
)
def test_A_01_what_has_no_effect_is_told(core: str, said: str) -> None:
    (told,) = [text for text in warnings_of(core) if "port" not in text]
    assert said in told
    assert errors_of(core) == []


PAGED = "<address-full-policy>PAGE</address-full-policy><max-size-messages>5</max-size-messages>"


@pytest.mark.parametrize("match", ["orders.eu", "orders.#", "orders.us.ny"])
@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("ring-size='3'", "is a ring on an address with address-full-policy PAGE"),
        ("sort-key='k'", "ordered only once it is in memory"),
        ("overflow-policy='RING' max-depth-messages='3'", "messages in pages do not count towards the ring"),
    ],
)
def test_A_01_it_is_told_that_pages_under_a_view_are_as_its_own(match: str, attributes: str, said: str) -> None:
    core = addresses(view(f"{EU_US} {attributes}"), settings=PAGED, match=match)
    assert any(said in text for text in warnings_of(core))
    own = addresses(view(f"{EU_US} {attributes}"), settings=PAGED, match="work")
    assert not any(said in text for text in warnings_of(own)), "nothing is published there"


def test_A_01_values_that_nobody_would_replace_are_refused_in_pages_under_a_view_too() -> None:
    values = f"{EU_US} last-value-key='k' non-destructive='true'"
    (problem,) = errors_of(addresses(view(values), settings=PAGED, match="orders.us.ny"))
    assert "values in pages would never be replaced" in problem.message


@pytest.mark.parametrize("attributes", ["", ONE])
def test_A_01_it_is_told_that_others_page_with_a_view_that_flows_to_disk(attributes: str) -> None:
    """And a view beside a queue that does."""
    disk = "queue-type='standard' overflow-policy='FLOW_TO_DISK' max-depth-messages='5'"
    alone = addresses(view(f"{ONE} {disk}"), view("", "orders.eu").replace("orders.eu", "orders.asia"))
    assert warnings_of(alone) == []
    (told,) = warnings_of(addresses(view(f"{ONE} {disk}"), view(attributes, "orders.eu" if not attributes else "v")))
    assert "flows to disk on an address with other queues" in told
    (told,) = warnings_of(addresses(view(disk, "orders.eu"), view(ONE)))
    assert "flows to disk on an address with other queues" in told


def test_A_01_a_declared_address_is_enough() -> None:
    off = "<auto-create-addresses>false</auto-create-addresses>"
    assert warnings_of(addresses(view(ONE), EU, settings=off)) == []


def test_A_01_a_loop_through_a_view_is_told() -> None:
    """A dead message of the view that comes to it again; and one that is diverted to the view."""
    one = view("underlying-address='a.#' default-publish-target='a' dead-letter-address='b'", "one")
    two = view("underlying-address='b' dead-letter-address='a.dead'", "two")
    assert warnings_of(addresses(one, two.replace("'a.dead'", "'c'"), view("", "c"))) == []
    (told,) = warnings_of(addresses(one, two))
    assert "messages go in a loop for as long as consumers fail: from 'a.dead' to 'b' by dead-letter-address" in told
    divert = """<diverts><divert name='d'><address>orders.eu</address><forwarding-address>work</forwarding-address>
        </divert></diverts>"""
    (told,) = warnings_of(addresses(view()) + divert)
    assert "from 'work' to 'orders.eu' by default-publish-target" in told


def test_explain_tells_what_a_view_reads_and_who_reads_an_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    core = addresses(view(), view(ONE, "audit"), EU)
    config = load_core(core)
    assert compose(explain(config, "work::work"))[0] == (
        "view", "over orders.eu, orders.us.#", "what is sent to work goes to orders.eu"
    )  # fmt: skip
    shown = {name: as_json(explain(config, name), ())["views"] for name in ("orders.eu", "orders.us.ny", "work")}
    assert shown == {"orders.eu": ["work::work", "audit::audit"], "orders.us.ny": ["work::work"], "work": []}
    both = view("underlying-address='work,a' default-publish-target='work'")
    assert compose(explain(load_core(addresses(both)), "work::work"))[0][2] == "what is sent to work stays there"
    file = broker_xml(tmp_path, core)
    assert main(["explain", "orders.eu", "--config", str(file)]) == 0
    assert "views over it: work::work, audit::audit" in capsys.readouterr().out
