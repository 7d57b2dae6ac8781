"""The settings of broker.xml that the journal needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """The ``journal-*`` elements of broker.xml, and ``id-cache-size``. docs/configuration.md describes them."""

    file_bytes: int = 10485760
    compact_files_min: int = 10
    compact_percentage: int = 30
    sync_transactional: bool = True
    sync_non_transactional: bool = True
    duplicate_ids_kept: int = 20000
    retains: bool = False
    files_min: int = 2
    broker_name: str = ""
    """The broker's name, for readers of the retained log."""
