"""``make oracle``: play the table on every real Artemis at hand, keep what it answers, and say what changed.

The brokers are those of ``ARTEMIS_HOME`` and of ``.cache/*/apache-artemis-*``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.oracle.artemis_broker import CACHE, artemis_broker
from tests.oracle.recording import record, recordings, store
from tests.oracle.table import PROFILES

WAIT_S: Final = 5.0
_TRIES: Final = 2
"""Artemis' threads race, most of all when a connection breaks: only what fails twice is another behaviour."""


def record_all(home: Path) -> dict[str, dict[str, Any]]:
    """What this Artemis answers to each scenario."""
    records: dict[str, dict[str, Any]] = {}
    for profile in PROFILES:
        with tempfile.TemporaryDirectory() as folder, artemis_broker(profile, Path(folder), home) as broker:
            for number, scenario in enumerate(profile.scenarios, 1):
                print(f"\r{home.name}: {profile.name} {number} of {len(profile.scenarios)}", end="", file=sys.stderr)
                records[scenario.name] = record(scenario, broker, WAIT_S)
    for profile, scenario, _ in ((one, each, n) for one in PROFILES for each in one.scenarios for n in range(_TRIES)):
        if records[scenario.name]["failure"]:
            alone = replace(profile, scenarios=(scenario,))
            with tempfile.TemporaryDirectory() as folder, artemis_broker(alone, Path(folder), home) as broker:
                records[scenario.name] = record(scenario, broker, WAIT_S)
    print(file=sys.stderr)
    return records


def main() -> int:
    """Record, and print what is new, gone, or ends in another way than before."""
    named = os.environ.get("ARTEMIS_HOME")
    at_hand = {path.resolve() for path in [*([Path(named)] if named else []), *CACHE.glob("*/apache-artemis-*")]}
    homes = sorted(path for path in at_hand if (path / "lib" / "artemis-boot.jar").exists())
    if not homes:
        print("no Artemis: set ARTEMIS_HOME, or unpack apache-artemis-VERSION into a folder of .cache", file=sys.stderr)
        return 1
    for home in homes:
        version = home.name.removeprefix("apache-artemis-")
        before = recordings().get(version, {})
        records = record_all(home)
        store(version, records)
        print(f"Artemis {version}: {len(records)} scenarios")
        for name in sorted(before.keys() | records.keys()):
            was, now = (one.get(name, {}).get("failure", "not recorded") for one in (before, records))
            if was != now:
                print(f"  {name}: {was or 'as the table says'} -> {now or 'as the table says'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
