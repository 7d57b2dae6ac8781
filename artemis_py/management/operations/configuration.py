"""Operations that reload broker.xml, and show what a reload would change."""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from artemis_py.errors import BrokerError
from artemis_py.management.fields import EPOCH_MS, NUMBER, Field
from artemis_py.management.managed import Arguments, Configuration, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, VIEW, Operation

_NONE: Final = "Artemis has no such operation"


def _configuration(managed: Managed) -> Configuration:
    if managed.configuration is None:
        raise BrokerError("this broker was not started from a file, so there is none to read again")
    return managed.configuration


def _reload(managed: Managed, arguments: Arguments) -> Steps:
    return _configuration(managed).reload()


def _diff(managed: Managed, arguments: Arguments) -> Steps:
    return _configuration(managed).diff()


def _show(managed: Managed, arguments: Arguments) -> Steps:
    return at_once(_configuration(managed).show())


CONFIGURATION_OPERATIONS: Final = (
    Operation(
        name="reloadConfigurationFile",
        right=EDIT,
        method="POST",
        path="/api/broker/reload",
        command="broker reload",
        sentence="Read the configuration again and bring it into force. A file with errors changes nothing.",
        result="result: applied, unchanged or partly; changeCount, and the first 1,000 changes; pendingRestart: what"
        " only a restart brings into force;"
        " failures: what could not be done; removedMessages: those of queues that were deleted",
        previews="/api/broker/changes",
        mbean=("void reloadConfigurationFile()",),
        work=_reload,
    ),
    Operation(
        name="getConfiguration",
        right=VIEW,
        method="GET",
        path="/api/broker/configuration",
        command="broker configuration",
        sentence="The file that is in force, when it was read, and what is wrong with it as it is now.",
        result="file; valid; readAt and triedAt in epoch ms; watched; problems with their lines; failures;"
        " pendingRestart; reloads by result",
        also=(
            Field("readAt", NUMBER, "When what is in force was read", itemgetter("readAt"), EPOCH_MS),
            Field("triedAt", NUMBER, "When the file was read last", itemgetter("triedAt"), EPOCH_MS),
        ),
        no_mbean=_NONE,
        work=_show,
    ),
    Operation(
        name="getConfigurationChanges",
        right=VIEW,
        method="GET",
        path="/api/broker/changes",
        command="broker changes",
        sentence="What a reload would change now, and which messages that would affect.",
        result="changeCount, and the first 1,000 changes, each with file, line and effect; affected: what has messages;"
        " pendingRestart",
        no_mbean=_NONE,
        work=_diff,
    ),
)
