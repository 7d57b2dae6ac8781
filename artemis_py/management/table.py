"""The table of operations. HTTP, commands, the OpenAPI description and docs/operations.md come from it.

A row is added to a file in ``operations/``, beside its work; nothing else knows operations by name.
"""

from __future__ import annotations

from typing import Final

from artemis_py.management.operation import Operation
from artemis_py.management.operations.addresses import ADDRESS_OPERATIONS
from artemis_py.management.operations.bridges import BRIDGE_OPERATIONS
from artemis_py.management.operations.broker import BROKER_OPERATIONS
from artemis_py.management.operations.browse import BROWSE_OPERATIONS
from artemis_py.management.operations.connections import ACCEPTOR_OPERATIONS, CONNECTION_OPERATIONS, SESSION_OPERATIONS
from artemis_py.management.operations.consumers import CONSUMER_OPERATIONS
from artemis_py.management.operations.dead_letters import DEAD_LETTER_OPERATIONS
from artemis_py.management.operations.diverts import DIVERT_OPERATIONS
from artemis_py.management.operations.export_messages import EXPORT_OPERATIONS
from artemis_py.management.operations.history import HISTORY_OPERATIONS
from artemis_py.management.operations.import_messages import IMPORT_OPERATIONS
from artemis_py.management.operations.jobs import JOB_OPERATIONS
from artemis_py.management.operations.messages import MESSAGE_OPERATIONS
from artemis_py.management.operations.queues import QUEUE_OPERATIONS
from artemis_py.management.operations.schedules import SCHEDULE_OPERATIONS
from artemis_py.management.operations.settings import CONFIGURATION_OPERATIONS, SETTINGS_OPERATIONS
from artemis_py.management.operations.storage import STORAGE_OPERATIONS
from artemis_py.management.operations.trace import TRACE_OPERATIONS
from artemis_py.management.operations.transactions import TRANSACTION_OPERATIONS
from artemis_py.management.operations.users import USER_OPERATIONS
from artemis_py.management.operations.why import WHY_OPERATIONS

OPERATIONS: Final[tuple[Operation, ...]] = (
    *BROKER_OPERATIONS,
    *ACCEPTOR_OPERATIONS,
    *STORAGE_OPERATIONS,
    *CONFIGURATION_OPERATIONS,
    *QUEUE_OPERATIONS,
    *BROWSE_OPERATIONS,
    *MESSAGE_OPERATIONS,
    *EXPORT_OPERATIONS,
    *IMPORT_OPERATIONS,
    *DEAD_LETTER_OPERATIONS,
    *JOB_OPERATIONS,
    *SCHEDULE_OPERATIONS,
    *ADDRESS_OPERATIONS,
    *DIVERT_OPERATIONS,
    *BRIDGE_OPERATIONS,
    *SETTINGS_OPERATIONS,
    *CONSUMER_OPERATIONS,
    *CONNECTION_OPERATIONS,
    *SESSION_OPERATIONS,
    *TRANSACTION_OPERATIONS,
    *USER_OPERATIONS,
    *WHY_OPERATIONS,
    *HISTORY_OPERATIONS,
    *TRACE_OPERATIONS,
)
