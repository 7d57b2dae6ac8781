"""All departures, in the order of the document."""

from __future__ import annotations

from typing import Final

from tests.oracle.differences.departure import Departure
from tests.oracle.differences.management import MANAGEMENT, RELOAD
from tests.oracle.differences.messages import ADDRESSES, ATTEMPTS, QUEUES
from tests.oracle.differences.operation import CONFIGURATION, METRICS, SELECTORS
from tests.oracle.differences.protocol import FRAMES, SESSIONS

SECTIONS: Final[dict[str, tuple[Departure, ...]]] = {
    "Queues": QUEUES,
    "Acknowledgements and attempts": ATTEMPTS,
    "Addresses": ADDRESSES,
    "Frames": FRAMES,
    "Sessions": SESSIONS,
    "Selectors": SELECTORS,
    "Configuration": (*CONFIGURATION, *RELOAD),
    "Management": MANAGEMENT,
    "Metrics": METRICS,
}

DEPARTURES: Final = {departure.key: departure for section in SECTIONS.values() for departure in section}
