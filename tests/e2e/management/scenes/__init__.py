"""One scene for each operation of the table, under its id."""

from __future__ import annotations

from typing import Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.scenes.basics import BASICS
from tests.e2e.management.scenes.clients import CLIENTS
from tests.e2e.management.scenes.configuration import CONFIGURATION
from tests.e2e.management.scenes.destinations import DESTINATIONS
from tests.e2e.management.scenes.exporting import EXPORTING
from tests.e2e.management.scenes.log import LOG
from tests.e2e.management.scenes.messages import MESSAGES
from tests.e2e.management.scenes.surroundings import SURROUNDINGS
from tests.e2e.management.scenes.tracing import TRACING
from tests.e2e.management.scenes.users import USER_SCENES
from tests.e2e.management.scenes.why import WHY

SCENES: Final[dict[str, Scene]] = {
    **BASICS, **CLIENTS, **CONFIGURATION, **DESTINATIONS, **EXPORTING, **LOG, **MESSAGES, **SURROUNDINGS, **TRACING,
    **USER_SCENES, **WHY,
}  # fmt: skip
