"""Groups and consumers: what check refuses, with the line and the reason, and what it warns about."""

from __future__ import annotations

import pytest

from artemis_py.errors import ConfigError
from tests.kit.documents import load_core, queue, setting, settings

SHARED = 'group-type="SHARED_GROUPS"'
RING_IN_ORDER = (
    "<default-overflow-policy>RING</default-overflow-policy><default-target-queue-depth>2</default-target-queue-depth>"
)
EXCLUSIVE = "<default-exclusive-queue>true</default-exclusive-queue>"


def refusal(core: str) -> str:
    """Why a file is refused, in one line."""
    with pytest.raises(ConfigError) as caught:
        load_core(core)
    (problem,) = caught.value.problems
    assert problem.line == 3
    return str(problem)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (f'{SHARED} exclusive="true"', "has group-type, but is exclusive"),
        ('group-key="k" exclusive="true"', "has group-key, but is exclusive"),
        ('group-key="k" non-destructive="true"', "has group-key, but is non-destructive"),
        ('group-key="k" group-type="NONE"', "has group-key, but has group-type NONE"),
        ('group-key="k" group-buckets="0"', "has group-key, but has group-buckets 0"),
        (f'{SHARED} group-buckets="4"', "which do not stay with a consumer, and group-"),
        (f'{SHARED} group-rebalance="true"', "which do not stay with a consumer, and group-"),
        (
            f'{SHARED} group-first-key="first"',
            "which do not stay with a consumer, and group-buckets, group-rebalance or",
        ),
        ('fallback-group="rest"', "has fallback-group without shared groups"),
        ('group-first-key="content-length"', "has group-first-key 'content-length', which every MESSAGE already has"),
        ('group-key=""', "group-key"),
        ('exclusive="true" max-live-consumers="2"', "one live consumer, and has max-live-consumers 2"),
        (
            'exclusivity-policy="LINK" max-live-consumers="2"',
            "admits one consumer (exclusivity-policy LINK) and has max-live",
        ),
        ('exclusivity-policy="LINK" consumers-before-dispatch="2"', "LINK) and has consumers-before-dispatch 2"),
        ('exclusivity-policy="MINE"', "exclusivity-policy"),
        ('max-live-consumers="-1"', "max-live-consumers"),
        ('consumer-replay-period="-1"', "consumer-replay-period"),
        ('consumer-selector="a ="', "consumer-selector of queue 'q' is not a valid selector"),
    ],
)
def test_what_makes_no_sense_is_refused(attributes: str, reason: str) -> None:
    assert reason in refusal(queue(attributes))


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        (
            "<default-group-type>SHARED_GROUPS</default-group-type><default-group-buckets>4</default-group-buckets>",
            "which do not stay with a consumer, and group-buckets, group-rebalance or",
        ),
        (
            EXCLUSIVE + "<default-max-live-consumers>2</default-max-live-consumers>",
            "is exclusive, which means one live consumer, and has max-live-consumers 2",
        ),
        (
            "<default-group-key>k</default-group-key><default-non-destructive>true</default-non-destructive>",
            "has group-key, but is non-destructive",
        ),
        ("<default-consumer-selector>a =</default-consumer-selector>", "is not a valid selector"),
    ],
)
def test_in_an_address_setting_too(inside: str, reason: str) -> None:
    assert reason in refusal(setting(inside))


@pytest.mark.parametrize(
    ("attributes", "inside", "reason"),
    [
        (
            'exclusive="true"',
            "<default-max-live-consumers>3</default-max-live-consumers>",
            "queue 'q' is exclusive, which means one live consumer, and has max-live-consumers 3",
        ),
        (
            'consumers-before-dispatch="2"',
            "<default-exclusivity-policy>LINK</default-exclusivity-policy>",
            "queue 'q' admits one consumer (exclusivity-policy LINK) and has consumers-before-dispatch 2",
        ),
        (
            'max-depth-messages="5"',
            RING_IN_ORDER,
            "queue 'q' has barrier-expression or target-queue-depth and is a ring",
        ),
    ],
)
def test_one_of_the_queue_and_one_of_its_address_setting(attributes: str, inside: str, reason: str) -> None:
    assert reason in refusal(queue(attributes) + setting(inside))


def test_several_address_settings_that_no_queue_may_have_together() -> None:
    """Each alone is fine, and the queue says nothing."""
    two = settings(("a.#", EXCLUSIVE), ("*.b", "<default-max-live-consumers>2</default-max-live-consumers>"))
    assert "queue 'q' is exclusive" in refusal(queue(address="a.b") + two)
    assert not [each for each in load_core(queue(address="a.c") + two).notices if "group" in str(each)]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('group-rebalance="true" exclusive="true"', "has group-rebalance, but is exclusive"),
        ('group-first-key="f" exclusive="true"', "has group-first-key, but is exclusive"),
        ('group-rebalance-pause-dispatch="true"', "group-rebalance-pause-dispatch without group-rebalance"),
    ],
)
def test_what_artemis_takes_is_a_warning(attributes: str, reason: str) -> None:
    (warning,) = (each for each in load_core(queue(attributes)).notices if "group" in str(each))
    assert warning.severity == "warning"
    assert reason in str(warning)


@pytest.mark.parametrize(
    "core",
    [
        queue(SHARED + ' fallback-group="rest" group-key="k"'),
        queue('group-buckets="4" group-rebalance="true" group-rebalance-pause-dispatch="true" group-first-key="f"'),
        queue('exclusive="true" group-buckets="-1" group-rebalance="false"'),
        queue('exclusive="true" max-live-consumers="1"'),
        queue('exclusivity-policy="LINK" max-live-consumers="1"'),
        setting("<default-fallback-group>rest</default-fallback-group>"),
        queue(SHARED) + setting("<default-group-buckets>4</default-group-buckets>"),
    ],
)
def test_what_is_taken_without_a_word(core: str) -> None:
    assert not [each for each in load_core(core).notices if "group" in str(each)]
