"""``journalRetentionDirectory`` and its limits, which are separate properties in Artemis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from artemis_py.config.draft import Draft
from artemis_py.config.overlay.properties_file import Property
from artemis_py.config.overlay.values import left_out, value_of
from artemis_py.config.tables.entities import CURSOR_TTL_S_DEFAULT, RetentionConfig
from artemis_py.config.tables.fields import BYTES, LONG, POSITIVE, TEXT, Setting, make_setting
from artemis_py.config.values import ValueTextError

RETENTION_BEANS: Final[dict[str, Setting]] = {
    "journalRetentionDirectory": make_setting(TEXT, "directory", None, "where closed journal files are kept"),
    "journalRetentionPeriod": make_setting(LONG, "period_ms", None, "how long they are kept, in ms", check=POSITIVE),
    "journalRetentionMaxBytes": make_setting(
        BYTES, "storage_limit", None, ("how many bytes of them are kept"), check=POSITIVE
    ),
}


def lay_over_retention(draft: Draft, bean: str, given: Property, *, remove: bool) -> None:
    """Apply one property to the retention settings; a wrong value is a warning."""
    row = RETENTION_BEANS[bean]
    value: Any = None
    if not remove:
        try:
            value = value_of(row, given.value)
        except ValueTextError as problem:
            left_out(draft, given, problem.allowed)
            return
    kept = draft.retention or RetentionConfig(
        directory="", period_ms=None, storage_limit=None, cursor_ttl_s=CURSOR_TTL_S_DEFAULT
    )
    changes: dict[str, Any] = {row.attribute: value or ("" if row.kind == TEXT else None)}
    draft.retention = replace(kept, **changes)
    draft.retention_origin = given.origin


def check_retention(draft: Draft) -> None:
    """Check retention after all properties: without a directory nothing is retained, and without a limit it would grow
    for ever.
    """
    kept = draft.retention
    if kept is None:
        return
    if not kept.directory:
        draft.retention = None
        if kept.period_ms or kept.storage_limit:
            draft.problems.warning(
                "without-limit",
                draft.retention_origin,
                "nothing is retained: journalRetentionDirectory is not set or was removed",
            )
    elif not (kept.period_ms or kept.storage_limit):
        draft.problems.error(
            draft.retention_origin,
            "journalRetentionDirectory needs journalRetentionPeriod (in ms) or journalRetentionMaxBytes",
        )
