"""Operations on acceptors, disks and the journal."""

from __future__ import annotations

from typing import Final

from artemis_py.core.tasks import WAIT
from artemis_py.errors import BrokerError
from artemis_py.management.lists.places import ACCEPTORS, DISKS
from artemis_py.management.managed import Given, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, VIEW, Operation
from artemis_py.management.operations.listing import listing, selected
from artemis_py.management.stored import Stored


def _list_acceptors(managed: Managed, given: Given) -> Steps:
    return (yield from selected(ACCEPTORS, managed.acceptors(), given))


def _list_disks(managed: Managed, given: Given) -> Steps:
    return (yield from selected(DISKS, [] if managed.stored is None else managed.stored.spaces(), given))


def stored_of(managed: Managed) -> Stored:
    """The files of the broker. Raises BrokerError if it has none."""
    if managed.stored is None:
        raise BrokerError("this broker has no journal: persistence-enabled is false")
    return managed.stored


def _show_journal(managed: Managed, given: Given) -> Steps:
    stored = stored_of(managed)
    return at_once({"id": stored.node_id, **stored.figures()})


def _compact(managed: Managed, given: Given) -> Steps:
    stored = stored_of(managed)
    before = stored.figures()
    stored.compact()
    while stored.is_compacting:
        yield WAIT
    after = stored.figures()
    return {
        "filesBefore": before["files"],
        "filesAfter": after["files"],
        "bytesBefore": before["bytes"],
        "bytesAfter": after["bytes"],
    }


PLACE_OPERATIONS: Final = (
    listing("listAcceptors", "/api/acceptors", "acceptor ls", ACCEPTORS, "Acceptors, one row each.", _list_acceptors),
    listing(
        "listDisks",
        "/api/disks",
        "broker disks",
        DISKS,
        "The directories that the broker writes to, one row each; none without persistence.",
        _list_disks,
    ),
    Operation(
        name="getJournal",
        right=VIEW,
        method="GET",
        path="/api/journal",
        command="broker journal",
        sentence="How much the journal and the retained log have.",
        result="id (of the log), and figures: records, batches, syncs, files, bytes, live_bytes, damaged_places,"
        " lost_records, retained_files, retained_bytes, overrun_files, overrun_bytes, cursors",
        work=_show_journal,
        no_mbean="Artemis' journal has other figures",
    ),
    Operation(
        name="compact",
        right=EDIT,
        method="POST",
        path="/api/journal/compact",
        command="broker compact",
        sentence="Write what lives in the journal's files again, and let the files go, but for the one that is written"
        " to. The broker does so by itself when it is worth it.",
        result="filesBefore, filesAfter, bytesBefore and bytesAfter",
        work=_compact,
        no_mbean="Artemis has it in its command line only",
    ),
)
