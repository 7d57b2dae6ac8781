"""Checks of groups: attributes that contradict each other or cancel each other's effect.

If all of them exist in Artemis, Artemis accepts the file; then it is only a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from artemis_py.config.checks.cases import Case
from artemis_py.config.draft import Draft

_OURS: Final = ("group_type", "group_key", "fallback_group")
_ARTEMIS: Final = ("group_rebalance", "group_rebalance_pause_dispatch", "group_buckets", "group_first_key")
_GROUPING: Final = (*_OURS, *_ARTEMIS)
_STICKY: Final = "STANDARD"
_SHARED: Final = "SHARED_GROUPS"
_NONE: Final = "NONE"
_OF_MESSAGES: Final = frozenset(
    {
        "ack", "content-length", "destination", "expires", "message-id", "persistent", "priority", "redelivered",
        "subscription", "timestamp",
    }
)  # fmt: skip
"""Headers that the broker itself sets in every MESSAGE."""


def check_groups(draft: Draft, cases: Sequence[Case]) -> None:
    """Refuse combinations that make no sense; warn of those without effect."""
    for case in cases:
        _Check(draft, case).run()


class _Check:
    """One place of the file: what is written there, and the effective values."""

    def __init__(self, draft: Draft, case: Case) -> None:
        self._problems = draft.problems
        self._subject = case.subject
        self._written = case.written
        self._place = case.place
        self._own = case.own
        self._name = case.name
        self._default = case.is_default

    def run(self) -> None:
        """Run all checks."""
        grouping = [name for name in _GROUPING if name in self._written and self._asks(name)]
        if grouping:
            self._check_effect(grouping)
            self._check_shared()
            self._check_rebalance()
            self._check_first_key()

    def _asks(self, name: str) -> bool:
        """Does the written value of the attribute ask for anything?"""
        value = self._written[name]
        return value not in (None, False, _NONE, "") and not (name == "group_buckets" and value <= 0)

    def _check_effect(self, grouping: list[str]) -> None:
        """Check for group attributes on a queue without groups."""
        own, reason = self._own, ""
        if own.exclusive:
            reason = "is exclusive, so one consumer gets every group"
        elif own.non_destructive:
            reason = "is non-destructive, so every consumer gets every message"
        elif own.group_type == _NONE:
            reason = "has group-type NONE"
        elif own.group_buckets == 0:
            reason = "has group-buckets 0, which switches groups off"
        if not reason:
            return
        chosen = next((name for name in grouping if name in _OURS), grouping[0])
        what = f"{self._subject} has {self._name(chosen)}, but {reason}: it has no effect"
        if chosen in _OURS:
            self._problems.error(self._place(chosen), what, allowed="either groups or the setting that excludes them")
        else:
            self._problems.warning("no-effect", self._place(chosen), what)

    def _check_shared(self) -> None:
        own = self._own
        if own.group_type == _SHARED:
            for name in ("group_buckets", "group_rebalance", "group_first_key"):
                if name in self._written and self._asks(name):
                    self._problems.error(
                        self._place(name),
                        f"{self._subject} has {self._name(name)} with shared groups, which do not stay with a consumer",
                        allowed=f"group-type {_STICKY} for it",
                    )
        elif "fallback_group" in self._written and own.group_type == _STICKY and not self._default:
            self._problems.error(
                self._place("fallback_group"),
                f"{self._subject} has {self._name('fallback_group')} without shared groups: a message without a "
                "group belongs to none",
                allowed=f"group-type {_SHARED} for it",
            )

    def _check_rebalance(self) -> None:
        name = "group_rebalance_pause_dispatch"
        if self._written.get(name) and not self._own.group_rebalance:
            what = f"{self._subject} has {self._name(name)} without group-rebalance: it has no effect"
            self._problems.warning("no-effect", self._place(name), what)

    def _check_first_key(self) -> None:
        name = "group_first_key"
        if name in self._written and self._own.group_first_key in _OF_MESSAGES:
            self._problems.error(
                self._place(name),
                f"{self._subject} has {self._name(name)} {self._own.group_first_key!r}, which every MESSAGE already "
                "has",
                allowed="a header of your own",
            )
