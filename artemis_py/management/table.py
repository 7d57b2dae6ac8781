"""The table of operations. HTTP, commands, the OpenAPI description and docs/operations.md come from it.

A row is added to a file in ``operations/``, beside its work; nothing else knows operations by name.
"""

from __future__ import annotations

from typing import Final

from artemis_py.management.operation import Operation
from artemis_py.management.operations.address_changes import ADDRESS_CHANGE_OPERATIONS
from artemis_py.management.operations.addresses import ADDRESS_OPERATIONS
from artemis_py.management.operations.broker import BROKER_OPERATIONS
from artemis_py.management.operations.browsing import BROWSING_OPERATIONS
from artemis_py.management.operations.configuration import CONFIGURATION_OPERATIONS
from artemis_py.management.operations.connections import CONNECTION_OPERATIONS
from artemis_py.management.operations.consumers import CONSUMER_OPERATIONS
from artemis_py.management.operations.dead_letters import DEAD_LETTER_OPERATIONS
from artemis_py.management.operations.diverts import DIVERT_OPERATIONS
from artemis_py.management.operations.exporting import EXPORT_OPERATIONS
from artemis_py.management.operations.importing import IMPORT_OPERATIONS
from artemis_py.management.operations.jobs import JOB_OPERATIONS
from artemis_py.management.operations.log import LOG_OPERATIONS
from artemis_py.management.operations.message_changes import MESSAGE_CHANGES
from artemis_py.management.operations.places import PLACE_OPERATIONS
from artemis_py.management.operations.queue_changes import QUEUE_CHANGE_OPERATIONS
from artemis_py.management.operations.queues import QUEUE_OPERATIONS
from artemis_py.management.operations.sessions import SESSION_OPERATIONS
from artemis_py.management.operations.settings import SETTINGS_OPERATIONS
from artemis_py.management.operations.tracing import TRACING_OPERATIONS
from artemis_py.management.operations.users import USER_OPERATIONS
from artemis_py.management.operations.why import WHY_OPERATIONS

OPERATIONS: Final[tuple[Operation, ...]] = (
    *BROKER_OPERATIONS,
    *PLACE_OPERATIONS,
    *CONFIGURATION_OPERATIONS,
    *QUEUE_OPERATIONS,
    *QUEUE_CHANGE_OPERATIONS,
    *BROWSING_OPERATIONS,
    *MESSAGE_CHANGES,
    *EXPORT_OPERATIONS,
    *IMPORT_OPERATIONS,
    *DEAD_LETTER_OPERATIONS,
    *JOB_OPERATIONS,
    *ADDRESS_OPERATIONS,
    *ADDRESS_CHANGE_OPERATIONS,
    *DIVERT_OPERATIONS,
    *SETTINGS_OPERATIONS,
    *CONSUMER_OPERATIONS,
    *CONNECTION_OPERATIONS,
    *SESSION_OPERATIONS,
    *USER_OPERATIONS,
    *LOG_OPERATIONS,
    *WHY_OPERATIONS,
    *TRACING_OPERATIONS,
)
