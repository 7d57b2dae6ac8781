"""The type of a queue: inferred, named, inherited, and refused when it is two types at once."""

from __future__ import annotations

import pytest

from artemis_py.config.tables.queue_settings import queue_settings
from tests.kit.documents import errors_of, load_core, problems_of, queue, setting, settings, warnings_of

PLAIN = (None, None, None, None)
PAGES = "<address-full-policy>PAGE</address-full-policy>"


def type_in(core: str) -> tuple[str | None, int | None, str | None, str | None]:
    """Type, levels, sort key and last-value key of the queue ``q``."""
    config = load_core(core)
    (declared,) = config.addresses[0].queues
    own = queue_settings(declared, config.settings_for("a"))
    assert own.last_value is (own.last_value_key is not None)
    return own.queue_type, own.priority_levels, own.sort_key, own.last_value_key


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", PLAIN),
        ("queue-type='standard'", ("standard", None, None, None)),
        ("queue-type='priority'", ("priority", 10, None, None)),
        ("priority-levels='3'", ("priority", 3, None, None)),
        ("queue-type='priority' priority-levels='3'", ("priority", 3, None, None)),
        ("sort-key='k'", ("sorted", None, "k", None)),
        ("queue-type='sorted' sort-key='k'", ("sorted", None, "k", None)),
        ("last-value='true'", (None, None, None, "_AMQ_LVQ_NAME")),
        ("last-value='false'", PLAIN),
        ("last-value-key='k'", (None, None, None, "k")),
        ("last-value-key=''", PLAIN),
        ("last-value='true' last-value-key='k'", (None, None, None, "k")),
        ("queue-type='lvq'", ("last-value", None, None, "qpid.LVQ_key")),
        ("queue-type='last-value'", ("last-value", None, None, "qpid.LVQ_key")),
        ("queue-type='lvq' last-value='true'", ("last-value", None, None, "_AMQ_LVQ_NAME")),
        ("queue-type='lvq' last-value-key='k'", ("last-value", None, None, "k")),
    ],
)
def test_type_of_a_queue(attributes: str, expected: tuple[object, ...]) -> None:
    assert type_in(queue(attributes)) == expected


@pytest.mark.parametrize(
    ("default", "attributes", "expected"),
    [
        ("<default-priority-levels>3</default-priority-levels>", "", ("priority", 3, None, None)),
        ("<default-priority-levels>3</default-priority-levels>", "queue-type='priority'", ("priority", 3, None, None)),
        ("<default-priority-levels>3</default-priority-levels>", "sort-key='k'", ("sorted", None, "k", None)),
        (
            "<default-priority-levels>3</default-priority-levels>",
            "queue-type='standard'",
            ("standard", None, None, None),
        ),
        ("<default-sort-key>k</default-sort-key>", "queue-type='sorted'", ("sorted", None, "k", None)),
        ("<default-sort-key>k</default-sort-key>", "sort-key='own'", ("sorted", None, "own", None)),
        ("<last-value-queue>true</last-value-queue>", "", (None, None, None, "_AMQ_LVQ_NAME")),
        ("<default-last-value-queue>true</default-last-value-queue>", "last-value='false'", PLAIN),
        ("<default-last-value-key>k</default-last-value-key>", "", (None, None, None, "k")),
        ("<default-last-value-key>k</default-last-value-key>", "queue-type='lvq'", ("last-value", None, None, "k")),
        ("<default-queue-type>lvq</default-queue-type>", "last-value-key='k'", ("last-value", None, None, "k")),
        ("<default-queue-type>lvq</default-queue-type>", "", ("last-value", None, None, "qpid.LVQ_key")),
    ],
)
def test_what_the_address_setting_adds(default: str, attributes: str, expected: tuple[object, ...]) -> None:
    """The first that names a type decides; what belongs to the type may come from the other."""
    assert type_in(setting(default) + queue(attributes)) == expected


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ("priority-levels='3' sort-key='k'", "priority-levels and sort-key"),
        ("priority-levels='3' priority-expression='k'", "priority-levels and priority-expression"),
        ("sort-key='k' priority-expression='k'", "sort-key and priority-expression"),
        ("last-value-key='k' priority-expression='k'", "priority-expression and last-value-key"),
        ("last-value='true' priority-expression='k'", "priority-expression and last-value"),
        ("queue-type='standard' priority-expression='k'", "queue-type and priority-expression"),
        ("queue-type='priority' priority-expression='k'", "queue-type and priority-expression"),
        ("queue-type='lvq' priority-expression='k'", "queue-type and priority-expression"),
        ("priority-levels='3' last-value='true'", "priority-levels and last-value"),
        ("sort-key='k' last-value-key='k'", "sort-key and last-value-key"),
        ("queue-type='standard' priority-levels='3'", "queue-type and priority-levels"),
        ("queue-type='priority' sort-key='k'", "queue-type and sort-key"),
        ("queue-type='sorted' sort-key='k' last-value='true'", "queue-type and last-value"),
        ("last-value='false' last-value-key='k'", "last-value and last-value-key"),
    ],
)
def test_Q_71_natures_cannot_be_mixed(attributes: str, named: str) -> None:
    (problem,) = errors_of(queue(attributes))
    assert str(problem).startswith(f"broker.xml:3: queue 'q' has {named}, which ask for different queue types")


def test_an_address_setting_cannot_mix_them_either() -> None:
    both = "<default-sort-key>k</default-sort-key><default-priority-levels>3</default-priority-levels>"
    (problem,) = errors_of(setting(both))
    assert problem.message.startswith("address-setting '#' has default-priority-levels and default-sort-key, which ask")


def test_two_address_settings_that_mix_them() -> None:
    """Nothing can be unset in a narrower match, so that one has to name the type."""
    wide, narrow = "<default-priority-levels>3</default-priority-levels>", "<default-sort-key>k</default-sort-key>"
    (problem,) = errors_of(settings(("#", wide), ("a.#", narrow)))
    assert (problem.line, problem.allowed) == (5, "default-queue-type in the more specific one, which wins")
    named = "<default-queue-type>sorted</default-queue-type>"
    core = settings(("#", wide), ("a.#", narrow + named)) + queue(address="a")
    assert type_in(core) == ("sorted", None, "k", None)


def test_sorted_by_nothing() -> None:
    assert [each.message for each in errors_of(queue("queue-type='sorted'"))] == [
        "queue 'q' is sorted but has no sort key"
    ]
    assert [each.message for each in errors_of(setting("<default-queue-type>sorted</default-queue-type>"))] == [
        "each queue of '#' is sorted but has no sort key"
    ]


@pytest.mark.parametrize(
    "attributes", ["sort-key='k'", "priority-levels='3'", "last-value='true'", "priority-expression='k'"]
)
def test_an_order_on_an_address_that_pages_is_a_warning(attributes: str) -> None:
    assert warnings_of(queue(attributes)) == [], "memory of the whole broker may always end: nothing to say"
    (warning,) = warnings_of(setting(PAGES) + queue(attributes))
    assert "a message in a page is ordered only once it is in memory" in warning
    for plain in ("queue-type='standard'", "last-value='false'"):
        assert warnings_of(setting(PAGES) + queue(plain)) == []


def test_values_that_nobody_takes_out_of_pages_are_refused() -> None:
    attributes = "last-value='true' non-destructive='true'"
    (problem,) = errors_of(setting(PAGES) + queue(attributes))
    assert problem.line == 3
    assert str(problem.allowed).endswith("address-full-policy DROP, FAIL or BLOCK")
    assert [each for each in problems_of(queue(attributes)) if each.severity == "error"] == []
    inherited = setting(PAGES + "<default-last-value-queue>true</default-last-value-queue>")
    (problem,) = errors_of(inherited + queue("non-destructive='true'"))
    assert problem.message.startswith("queue 'q' is a non-destructive last-value queue")


@pytest.mark.parametrize(
    ("default", "attributes", "expected"),
    [
        ("", "priority-expression='a + 1'", (None, "a + 1")),
        ("<default-priority-expression>b</default-priority-expression>", "", (None, "b")),
        ("<default-priority-expression>b</default-priority-expression>", "priority-expression='a'", (None, "a")),
        ("<default-priority-expression>b</default-priority-expression>", "sort-key='k'", ("sorted", None)),
        ("<default-priority-expression>b</default-priority-expression>", "queue-type='standard'", ("standard", None)),
        ("<default-sort-key>k</default-sort-key>", "priority-expression='a'", (None, "a")),
        ("<default-queue-type>lvq</default-queue-type>", "priority-expression='a'", (None, "a")),
    ],
)
def test_an_expression_is_a_type_without_a_name(default: str, attributes: str, expected: tuple[object, ...]) -> None:
    """As with other types, the queue's own one takes precedence."""
    config = load_core((setting(default) if default else "") + queue(attributes))
    own = queue_settings(config.addresses[0].queues[0], config.settings_for("a"))
    assert (own.queue_type, own.priority_expression) == expected


def test_an_expression_that_does_not_parse_is_told_with_its_place() -> None:
    (problem,) = errors_of(queue("priority-expression='a = 1'"))
    assert str(problem).startswith("broker.xml:3: priority-expression of queue 'q' is not a valid expression: ")
    assert "expected +, -, *, /, % or the end of the expression, found '='" in str(problem)
    (problem,) = errors_of(setting("<default-priority-expression>a +</default-priority-expression>"))
    assert problem.message.startswith("default-priority-expression of '#' is not a valid expression: ")
    (problem,) = errors_of(queue("priority-expression=' '"))
    assert "a non-blank text" in str(problem)
