"""Selectors: a condition over one message's headers, written in the SQL-92 subset of JMS.

``compile_selector("region = 'eu' AND AMQPriority > 4")`` parses once; ``Selector.matches(lookup)`` then asks ``lookup``
for each name it needs. Grammar and limits are described in :mod:`artemis_py.selector.grammar`, what the operators do
in :mod:`artemis_py.selector.evaluate`.
"""

from __future__ import annotations

from artemis_py.selector.evaluate import Program, Selector, compile_selector
from artemis_py.selector.grammar import BROKER_LIMITS, CLIENT_LIMITS, SelectorLimits

__all__ = ["BROKER_LIMITS", "CLIENT_LIMITS", "Program", "Selector", "SelectorLimits", "compile_selector"]
