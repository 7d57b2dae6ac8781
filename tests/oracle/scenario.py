"""A row of the table: what is declared, what is done, and what is expected of each broker."""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracle.steps import Step


@dataclass(frozen=True)
class Scenario:
    """``addresses``, ``settings`` and ``diverts`` are pieces of broker.xml; their names belong to this scenario alone.

    ``departures`` names the differences from Artemis (``tests/oracle/differences``) that its ``Either`` steps show.
    ``scans`` says that it needs the scans for expired messages and unused queues.
    """

    name: str
    why: str
    steps: tuple[Step, ...]
    addresses: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    diverts: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    scans: bool = False
