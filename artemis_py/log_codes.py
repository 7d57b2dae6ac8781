"""The codes of the lines of the broker's log that are about no queue: those are in ``core/events.py``, those of the
audit log in ``server/operational_log.py``, and those of the configuration in ``server/configuration/reload.py``.

The codes that begin with BRK are those of Qpid Broker-J's operational log; it has none for the others.
"""

from __future__ import annotations

from typing import Final

NOTICE: Final = "CFG-1005"
LISTENING: Final = "BRK-1002"
STOPPING: Final = "BRK-1003"
READY: Final = "BRK-1004"
STOPPED: Final = "BRK-1005"
OTHER: Final = "ART-2000"
LOGIN: Final = "ART-2001"
DENIED: Final = "ART-2002"
TLS: Final = "ART-2003"
ACCEPTOR: Final = "ART-2004"
CONNECTION: Final = "ART-2005"
STORAGE: Final = "ART-2006"
DISK: Final = "ART-2007"
CLOCK: Final = "ART-2008"
STANDBY: Final = "ART-2009"
FAILED: Final = "ART-2010"
REALM: Final = "ART-2011"
BRIDGE: Final = "ART-2012"

MEANINGS: Final = {
    NOTICE: "a warning or note of a start about the configuration, or about the files of users (`file`, `line`)",
    LISTENING: "a port was opened, or is served by a stand-by that takes over; where the console is",
    STOPPING: "the broker stops, or waits for clients to settle what they have",
    READY: "the broker is ready, at a start or because a stand-by has taken over",
    STOPPED: "the broker has stopped, and what was left",
    OTHER: "anything else: a failure in the program, with its traceback, or the limit of memory held for clients",
    LOGIN: "a login was refused, or could not be checked",
    DENIED: "somebody lacks a permission (the first time for each user and address)",
    TLS: "a TLS connection was not made, or was closed; a certificate was renewed, or cannot be",
    ACCEPTOR: "an acceptor accepts nobody for now, or could not accept a client",
    CONNECTION: "a connection is closed because a step of it failed",
    STORAGE: "something is wrong with a file or directory of the store, or was put right; what a start recovered",
    DISK: "a disk is full, or has room again",
    CLOCK: "the clock was set",
    STANDBY: "for what a stand-by waits, and what it found",
    FAILED: "the broker stops because storage or a turn failed, or does not start",
    BRIDGE: "a bridge has connected, has lost its connection, was refused a message, is part of a loop, or stops",
    REALM: "a file of users, roles or keys of tokens is not in force as it is now, or only in part",
}
"""What each code means."""
