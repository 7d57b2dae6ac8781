"""Address-settings that operators make: at once, after a restart and a reload, and in the form of Artemis' beans."""

from __future__ import annotations

import json

import pytest

from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from artemis_py.management.artemis.beans import BROKER
from tests.kit.core import redeploy
from tests.kit.in_process import configuration
from tests.kit.life import Life
from tests.unit.management.operated import Operated, operated_bench

QUEUES = "<addresses><address name='q'><anycast><queue name='q'/></anycast></address></addresses>"
FILE = """<address-settings><address-setting match='#'><max-delivery-attempts>7</max-delivery-attempts>
</address-setting><address-setting match='q'><default-ring-size>2</default-ring-size></address-setting>
</address-settings>"""


# ---- at once -----------------------------------------------------------------------------------------


def test_they_count_at_once_for_what_is_there_and_what_comes() -> None:
    one, operated = operated_bench(core=QUEUES + FILE)
    for number in range(4):
        one.send(str(number))
    assert one.count() == 2
    (row,) = operated.do("getAddressSettingsAsJSON", address="q", where="name=default-ring-size")
    assert (row["value"], "broker.xml" in row["declaredAt"]) == ("2", True)
    answer = operated.do("addAddressSettings", address="q", values="default-ring-size=3")
    assert answer == {"pendingRestart": {}}
    (row,) = operated.do("getAddressSettingsAsJSON", address="q", where="name=default-ring-size")
    assert (row["value"], row["declaredAt"]) == ("3", "an operator")
    for number in range(4):
        one.send(str(number))
    assert one.count() == 3
    operated.do(
        "addAddressSettings", address="new.#", settings=json.dumps({"maxDeliveryAttempts": 3, "max-size-bytes": "1M"})
    )
    operated.do("createQueue", name="new.one")
    address = one.world.broker.addresses["new.one"]
    assert (address.settings.max_delivery_attempts, address.settings.max_size_bytes) == (3, 1024**2)
    assert operated.do("removeAddressSettings", address="new.#") == {"pendingRestart": {}}
    assert address.settings.max_delivery_attempts == 7


def test_they_stand_in_the_place_of_the_files() -> None:
    """As in Artemis: what the file says for the same match does not count; other matches do."""
    one, operated = operated_bench(core=QUEUES + FILE)
    operated.do("addAddressSettings", address="q", values="max-delivery-attempts=1")
    settings = one.world.broker.addresses["q"].settings
    assert (settings.default_ring_size, settings.max_delivery_attempts) == (-1, 1)
    operated.do("removeAddressSettings", address="q")
    settings = one.world.broker.addresses["q"].settings
    assert (settings.default_ring_size, settings.max_delivery_attempts) == (2, 7)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": "max-size-byte=1"}, "there is no address-setting 'max-size-byte'; did you mean 'max-size-bytes'"),
        ({"values": "max-size-bytes=much"}, "max-size-bytes has a wrong value 'much'"),
        ({"values": "max-size-bytes"}, "write it as name=value"),
        ({}, "no setting is given"),
        ({"settings": "{}"}, "no setting is given"),
        ({"settings": '{"maxDeliveryAttempts": 3}', "address": ""}, "the match is empty, and covers no address"),
        ({"settings": "{"}, "the settings are not JSON"),
        ({"settings": "[1]"}, "must be a JSON object"),
        ({"settings": '{"nonsense": 1}'}, "there is no address-setting 'nonsense'"),
        ({"address": "a.#.b*", "values": "max-size-bytes=1"}, "b*"),
        (
            {"values": "default-queue-type=sorted"},
            r"has no sort key \(allowed: sort-key with the name of a header\)",
        ),
        ({"values": "default-consumer-selector=a ="}, "is not a valid selector"),
    ],
)
def test_what_is_refused_changes_nothing(given: dict[str, str], said: str) -> None:
    one, operated = operated_bench(core=QUEUES + FILE)
    before = one.world.broker.addresses["q"].settings
    with pytest.raises(BadRequestError, match=said):
        operated.do("addAddressSettings", **{"address": "q", **given})
    assert one.world.broker.addresses["q"].settings == before


def test_what_cannot_be_removed() -> None:
    _, operated = operated_bench(core=QUEUES + FILE)
    with pytest.raises(BrokerError, match=r"the address-setting q is that of broker\.xml; change it there"):
        operated.do("removeAddressSettings", address="q")
    with pytest.raises(NotFoundError, match="no operator has made an address-setting for 'x'"):
        operated.do("removeAddressSettings", address="x")


# ---- afterwards --------------------------------------------------------------------------------------


def test_a_restart_has_them() -> None:
    life = Life("", instead=QUEUES, core=FILE)
    operated = Operated(life.broker)
    operated.do("addAddressSettings", address="q", values="default-ring-size=5")
    operated.do("addAddressSettings", address="x", values="max-delivery-attempts=2")
    operated.do("removeAddressSettings", address="x")
    life = life.again()
    operated, broker = Operated(life.broker), life.broker.broker
    assert broker.addresses["q"].settings.default_ring_size == 5
    assert broker.config.settings_for("x").max_delivery_attempts == 7
    operated.do("removeAddressSettings", address="q")
    assert life.again().broker.broker.addresses["q"].settings.default_ring_size == 2


def test_a_reload_keeps_them() -> None:
    one, operated = operated_bench(core=QUEUES + FILE)
    operated.do("addAddressSettings", address="q", values="default-ring-size=5")
    config = configuration(QUEUES + FILE.replace(">2<", ">9<").replace(">7<", ">8<"))
    redeploy(one.world.broker, config)
    settings = one.world.broker.addresses["q"].settings
    assert (settings.default_ring_size, settings.max_delivery_attempts) == (5, 8)
    operated.do("removeAddressSettings", address="q")
    assert one.world.broker.addresses["q"].settings.default_ring_size == 9


# ---- as Artemis' beans say it ------------------------------------------------------------------------


def test_the_json_of_a_bean() -> None:
    _, operated = operated_bench(core=QUEUES + FILE)
    given = {"addressFullMessagePolicy": "DROP", "maxSizeBytes": 1000, "autoCreateQueues": False, "expiryAddress": None}
    added, text, removed = (
        operated.carry_out(operated.prepared(BROKER, "b", name, *values).begin()).value
        for name, *values in (
            ("addAddressSettings(java.lang.String,java.lang.String)", "x.#", json.dumps(given)),
            ("getAddressSettingsAsJSON(java.lang.String)", "x.y"),
            ("removeAddressSettings(java.lang.String)", "x.#"),
        )
    )
    told = json.loads(text)
    assert {name: told[name] for name in ("addressFullMessagePolicy", "maxSizeBytes", "autoCreateQueues")} == {
        "addressFullMessagePolicy": "DROP", "maxSizeBytes": 1000, "autoCreateQueues": False,
    }  # fmt: skip
    assert told["maxDeliveryAttempts"] == 7
    assert "queuePrefetch" not in told
    assert (added, removed) == (None, None)
