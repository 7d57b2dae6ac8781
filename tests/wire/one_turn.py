"""Which transcripts are about what falls into one turn."""

from __future__ import annotations

ABOUT_ONE_TURN = frozenset(
    {"blocked_sender_leaves", "drop_in_the_turn_of_arrival", "one_turn_whole_life", "two_producers"}
)
"""Transcripts in which it shows what falls into one turn: who of two clients came first, whether a consumer was still
there, how often a sender that waits has tried.
"""
