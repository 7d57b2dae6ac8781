"""Selectors: a condition over one message's headers, written in the SQL-92 subset of JMS.

``compile_selector("region = 'eu' AND AMQPriority > 4")`` parses once; ``Selector.matches(lookup)`` then calls
``lookup`` for each name it needs. :mod:`artemis_py.selector.grammar` describes grammar and limits,
:mod:`artemis_py.selector.evaluate` the operators.
"""

from __future__ import annotations

from artemis_py.selector.evaluate import Program, Selector, compile_selector
from artemis_py.selector.grammar import BROKER_LIMITS, CLIENT_LIMITS, SelectorLimits

__all__ = ["BROKER_LIMITS", "CLIENT_LIMITS", "Program", "Selector", "SelectorLimits", "compile_selector"]
