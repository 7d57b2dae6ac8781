"""The table: every scenario, and the processes that they share."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.configuration import Profile
from tests.oracle.scenario import Scenario
from tests.oracle.table import additions, addresses, connecting, dispatch, frames, lifetimes, ring, settling, subscribing

SCENARIOS: tuple[Scenario, ...] = (*ring.SCENARIOS, *dispatch.SCENARIOS, *lifetimes.SCENARIOS, *addresses.SCENARIOS, *connecting.SCENARIOS, *frames.SCENARIOS, *settling.SCENARIOS, *subscribing.SCENARIOS, *additions.SCENARIOS)

COMMON = Scenario(
    "common",
    "what several scenarios use",
    (),
    addresses=(xml.anycast("dead.ring"),),
)

PROFILES = (
    Profile("still", -1, (COMMON, *(scenario for scenario in SCENARIOS if not scenario.scans))),
    Profile("scanning", 100, (COMMON, *(scenario for scenario in SCENARIOS if scenario.scans))),
)
