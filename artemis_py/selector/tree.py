"""The nodes of a selector's tree, made by the parser.

``height`` is the number of nodes on the longest path; the parser limits it, so that walking a tree is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final


@final
class Literal:
    """A text, a number, TRUE, FALSE or NULL (None)."""

    __slots__ = ("value", "height")

    def __init__(self, value: str | int | float | bool | None) -> None:
        self.value: Final = value
        self.height: Final[int] = 1


@final
class Property:
    """The value of a header or built-in name."""

    __slots__ = ("name", "height")

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.height: Final[int] = 1


@final
class Negative:
    """``-operand``"""

    __slots__ = ("operand", "height")

    def __init__(self, operand: Node) -> None:
        self.operand: Final = operand
        self.height: Final[int] = operand.height + 1


@final
class Arithmetic:
    """``left operator right`` with one of ``+ - * / %``"""

    __slots__ = ("operator", "left", "right", "height")

    def __init__(self, operator: str, left: Node, right: Node) -> None:
        self.operator: Final = operator
        self.left: Final = left
        self.right: Final = right
        self.height: Final[int] = max(left.height, right.height) + 1


@final
class Comparison:
    """``left operator right`` with one of ``= <> < <= > >=``"""

    __slots__ = ("operator", "left", "right", "height")

    def __init__(self, operator: str, left: Node, right: Node) -> None:
        self.operator: Final = operator
        self.left: Final = left
        self.right: Final = right
        self.height: Final[int] = max(left.height, right.height) + 1


@final
class Between:
    """``operand [NOT] BETWEEN low AND high``"""

    __slots__ = ("operand", "low", "high", "negated", "height")

    def __init__(self, operand: Node, low: Node, high: Node, negated: bool) -> None:
        self.operand: Final = operand
        self.low: Final = low
        self.high: Final = high
        self.negated: Final = negated
        self.height: Final[int] = max(operand.height, low.height, high.height) + 1


@final
class In:
    """``name [NOT] IN ('…', '…')``"""

    __slots__ = ("operand", "texts", "negated", "height")

    def __init__(self, operand: Property, texts: frozenset[str], negated: bool) -> None:
        self.operand: Final = operand
        self.texts: Final = texts
        self.negated: Final = negated
        self.height: Final[int] = 2


@final
class Like:
    """``operand [NOT] LIKE 'pattern' [ESCAPE 'c']``"""

    __slots__ = ("operand", "pattern", "escape", "negated", "height")

    def __init__(self, operand: Node, pattern: str, escape: str | None, negated: bool) -> None:
        self.operand: Final = operand
        self.pattern: Final = pattern
        self.escape: Final = escape
        self.negated: Final = negated
        self.height: Final[int] = operand.height + 1


@final
class IsNull:
    """``operand IS [NOT] NULL``"""

    __slots__ = ("operand", "negated", "height")

    def __init__(self, operand: Node, negated: bool) -> None:
        self.operand: Final = operand
        self.negated: Final = negated
        self.height: Final[int] = operand.height + 1


@final
class Truth:
    """A property used as a condition."""

    __slots__ = ("operand", "height")

    def __init__(self, operand: Property) -> None:
        self.operand: Final = operand
        self.height: Final[int] = 2


@final
class Not:
    """``NOT condition``"""

    __slots__ = ("condition", "height")

    def __init__(self, condition: Node) -> None:
        self.condition: Final = condition
        self.height: Final[int] = condition.height + 1


@final
class And:
    """``condition AND condition AND …``: a long chain is wide, not high."""

    __slots__ = ("conditions", "height")

    def __init__(self, conditions: Sequence[Node]) -> None:
        self.conditions: Final = tuple(conditions)
        self.height: Final[int] = max(condition.height for condition in conditions) + 1


@final
class Or:
    """``condition OR condition OR …``: a long chain is wide, not high."""

    __slots__ = ("conditions", "height")

    def __init__(self, conditions: Sequence[Node]) -> None:
        self.conditions: Final = tuple(conditions)
        self.height: Final[int] = max(condition.height for condition in conditions) + 1


Node: TypeAlias = (
    Literal | Property | Negative | Arithmetic | Comparison | Between | In | Like | IsNull | Truth | Not | And | Or
)


def is_condition(node: Node) -> bool:
    """Return whether ``node`` is a condition by its form; a property becomes a condition only through Truth."""
    if isinstance(node, Literal):
        return node.value is None or isinstance(node.value, bool)
    return isinstance(node, (Comparison, Between, In, Like, IsNull, Truth, Not, And, Or))


def texts_in(node: Node) -> tuple[int, int]:
    """From how many headers, and how many characters of the selector, ``+`` may join a value."""
    if isinstance(node, Property):
        return 1, 0
    if isinstance(node, Literal):
        return 0, len(node.value) if isinstance(node.value, str) else 0
    if not isinstance(node, Arithmetic) or node.operator != "+":
        return 0, 0
    (headers, characters), (others, more) = texts_in(node.left), texts_in(node.right)
    return headers + others, characters + more
