"""Selectors: a condition over one message's headers, written in the SQL-92 subset of JMS.

``compile_selector("region = 'eu' AND AMQPriority > 4")`` parses once; ``Selector.matches(lookup)`` then calls
``lookup`` for each name it needs. ``compile_expression("rank * 10")`` does the same for a number.
:mod:`artemis_py.selector.grammar` describes grammar and limits, :mod:`artemis_py.selector.evaluate` the operators.
"""

from __future__ import annotations

from artemis_py.selector.evaluate import Expression, Program, Selector, compile_expression, compile_selector
from artemis_py.selector.grammar import BROKER_LIMITS, CLIENT_LIMITS, SelectorLimits

__all__ = [
    "BROKER_LIMITS", "CLIENT_LIMITS", "Expression", "Program", "Selector", "SelectorLimits", "compile_expression",
    "compile_selector",
]  # fmt: skip
