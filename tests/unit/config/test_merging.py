"""Which address-setting decides, field by field. The order of matches is tested with the repository."""

from __future__ import annotations

import pytest

from artemis_py.config.settings import SettingsEntry, SettingsRepository
from tests.kit.documents import errors_of, load_core, settings, warnings_of


def repository(entries: dict[str, dict[str, object]], **options: str) -> SettingsRepository:
    return SettingsRepository(
        [SettingsEntry(match=match, values=values) for match, values in entries.items()],
        literal_match_markers=options.get("markers"),
        uuid_namespace=options.get("uuid_namespace", ""),
    )


def test_17_each_field_comes_from_the_most_specific_setting_that_sets_it() -> None:
    merged = repository(
        {
            "#": {"max_size_bytes": 2001, "max_delivery_attempts": 2000, "max_redelivery_delay": 5000},
            "a.b": {"max_size_bytes": 1001, "redelivery_delay": 1003},
        }
    ).settings_for("a.b")
    assert (merged.max_size_bytes, merged.redelivery_delay) == (1001, 1003)
    assert (merged.max_delivery_attempts, merged.max_redelivery_delay) == (2000, 5000)


def test_18_derived_defaults_follow_the_merged_value() -> None:
    found = repository({"#": {"redelivery_delay": 5}, "a.b": {"redelivery_delay": 100}})
    assert found.settings_for("a.b").max_redelivery_delay == 1000
    assert found.settings_for("x").max_redelivery_delay == 50
    paged = repository({"#": {"page_size_bytes": 100}}).settings_for("a")
    assert (paged.max_read_page_bytes, paged.prefetch_page_bytes) == (200, 200)
    read = repository({"#": {"max_read_page_messages": 7}}).settings_for("a")
    assert read.prefetch_page_messages == 7


def test_19_a_default_written_explicitly_stops_inheritance() -> None:
    core = settings(
        ("a.#", "<max-size-bytes>-1</max-size-bytes><no-expiry>false</no-expiry>"),
        ("#", "<max-size-bytes>10M</max-size-bytes><no-expiry>true</no-expiry>"),
    )
    config = load_core(core)
    assert (config.settings_for("a.b").max_size_bytes, config.settings_for("a.b").no_expiry) == (-1, False)
    assert (config.settings_for("b").max_size_bytes, config.settings_for("b").no_expiry) == (10 * 1024**2, True)


@pytest.mark.parametrize("name", ["prefetch-page-messages", "prefetch-page-bytes"])
def test_prefetch_minus_1_does_not_stop_inheritance(name: str) -> None:
    config = load_core(settings(("a.#", f"<{name}>-1</{name}>"), ("#", f"<{name}>7</{name}>")))
    assert getattr(config.settings_for("a.b"), name.replace("-", "_")) == 7


def test_an_empty_dead_letter_address_means_none_and_stops_inheritance() -> None:
    config = load_core(
        settings(
            ("#", "<dead-letter-address>DLQ</dead-letter-address>"),
            ("a", "<dead-letter-address></dead-letter-address>"),
        )
    )
    assert config.settings_for("b").dead_letter_address == "DLQ"
    assert config.settings_for("a").dead_letter_address is None


def test_1_and_2_exact_before_star_before_hash() -> None:
    found = repository(
        {
            match: {"dead_letter_address": match, name: True}
            for match, name in {
                "#": "no_expiry", "a.#": "default_exclusive_queue", "a.*": "default_non_destructive",
                "a.b": "send_to_dla_on_no_route",
            }.items()
        }
    )  # fmt: skip
    flags = ("no_expiry", "default_exclusive_queue", "default_non_destructive", "send_to_dla_on_no_route")

    for address, decider, set_by in (
        ("a.b", "a.b", [True, True, True, True]),
        ("a", "a.#", [True, True, False, False]),
        ("a.b.c", "a.#", [True, True, False, False]),
        ("z", "#", [True, False, False, False]),
    ):
        merged = found.settings_for(address)
        assert (merged.dead_letter_address, [getattr(merged, flag) for flag in flags]) == (decider, set_by)


def test_3_a_star_beats_a_deeper_hash() -> None:
    found = repository({"foo.*": {"redelivery_delay": 1}, "foo.0.#": {"redelivery_delay": 2, "expiry_delay": 3}})
    merged = found.settings_for("foo.0")
    assert (merged.redelivery_delay, merged.expiry_delay) == (1, 3)


def test_14_literal_markers() -> None:
    found = repository(
        {name: dict[str, object](dead_letter_address=name) for name in ("#", "(a.#)", "a.#", "a.b")}, markers="()"
    )
    assert found.settings_for("a.#").dead_letter_address == "(a.#)"
    assert found.settings_for("a.b").dead_letter_address == "a.b"
    assert found.settings_for("(a.#)").dead_letter_address == "#"


def test_nothing_matches_nothing_is_set() -> None:
    assert repository({}).settings_for("a") == repository({"b": {"redelivery_delay": 1}}).settings_for("a")


def test_a_full_name_is_cut_at_the_colons() -> None:
    config = load_core(settings(("a", "<redelivery-delay>7</redelivery-delay>")))
    assert config.settings_for("a::q").redelivery_delay == 7
    assert (
        load_core(settings(("a::q", "<redelivery-delay>7</redelivery-delay>"))).settings_for("a").redelivery_delay == 7
    )


def test_a_second_setting_with_the_same_match_is_left_out_whole() -> None:
    core = settings(
        ("a", "<redelivery-delay>1</redelivery-delay>"),
        ("a", "<redelivery-delay>2</redelivery-delay><no-expiry>true</no-expiry>"),
    )
    merged = load_core(core).settings_for("a")
    assert (merged.redelivery_delay, merged.no_expiry) == (1, False)
    (warning,) = warnings_of(core)
    assert warning.startswith("broker.xml:5: a second address-setting for the match 'a' is ignored")


def test_of_an_old_and_a_new_name_the_later_one_counts() -> None:
    old, new = "<last-value-queue>true</last-value-queue>", "<default-last-value-queue>false</default-last-value-queue>"
    assert load_core(settings(("#", old + new))).settings_for("a").default_last_value_queue is False
    assert load_core(settings(("#", new + old))).settings_for("a").default_last_value_queue is True


def test_a_uuid_is_looked_up_below_its_namespace() -> None:
    uuid = "8d3e2b1c-0000-4000-8000-0123456789ab"
    found = repository({"temp.#": {"redelivery_delay": 7}}, uuid_namespace="temp")
    assert found.settings_for(uuid).redelivery_delay == 7
    assert found.settings_for(uuid.upper()).redelivery_delay == 0
    assert repository({"temp.#": {"redelivery_delay": 7}}).settings_for(uuid).redelivery_delay == 0


def test_a_trace_names_match_and_place_of_each_value() -> None:
    config = load_core(
        settings(
            ("#", "\n<redelivery-delay>5</redelivery-delay><no-expiry>true</no-expiry>"),
            ("a.*", "\n\n<redelivery-delay>6</redelivery-delay>"),
        )
    )
    traced = config.address_settings.trace("a.b")
    assert traced["redelivery_delay"][:2] == (6, "a.*")
    assert traced["no_expiry"][:2] == (True, "#")
    assert [str(traced[name].origin) for name in ("redelivery_delay", "no_expiry")] == ["broker.xml:8", "broker.xml:5"]
    assert traced["max_redelivery_delay"] == (60, None, None)


def test_lookups_are_remembered_but_not_for_ever() -> None:
    found = repository({f"a.{number}": {"redelivery_delay": 1} for number in range(10_000)})
    first = found.settings_for("a.0")
    assert found.settings_for("a.0") is first
    for number in range(10_000):
        found.settings_for(f"a.{number}")
    assert found.settings_for("a.0") is not first


def test_a_bad_match_is_refused_at_its_line() -> None:
    (problem,) = errors_of(settings(("a", ""), ("a.#.b", "")))
    assert problem.line == 5
    assert "'#' must be the last character" in problem.message
    (problem,) = errors_of('<security-settings>\n<security-setting match="#.a"/></security-settings>')
    assert problem.line == 4


def test_addresses_with_the_same_entries_share_their_settings() -> None:
    """Settings have a hundred values: a million addresses cannot have each its own."""
    found = repository({"#": {"max_size_bytes": 1}, "a.#": {"max_size_messages": 2}})
    first = found.settings_for("a")
    assert all(found.settings_for(f"a.{number}") is first for number in range(10_000))
    assert found.settings_for("b") is not first
