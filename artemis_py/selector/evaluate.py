"""Compiles trees to conditions: each node becomes one function, once per selector.

Three-valued logic: a name without a value is NULL, an operator with a NULL operand gives NULL (unknown), NOT NULL is
NULL, AND is FALSE if any operand is, else NULL if any is; OR likewise with TRUE. A message matches when the whole is
TRUE. An impossible result (a text in arithmetic, division by zero, a result too large) is also NULL, so the order of
operands never matters.

Kinds of values. STOMP headers are texts, built-ins such as AMQPriority are numbers. Between different kinds ``=`` is
FALSE, ``<>`` (which is NOT ``=``) is TRUE, and ``<``, ``<=``, ``>``, ``>=``, BETWEEN and NOT BETWEEN are FALSE: so
``age > 18`` does not match a header ``age:21``. Two headers are ordered by their characters. For values other than
texts, LIKE is FALSE, NOT LIKE is TRUE, and IN and NOT IN are NULL. A name used as a condition is TRUE only for the
boolean true, and so is ``flag = TRUE``: a header ``flag:true`` is the text 'true' and equals ``'true'``.

``convert_string_expressions:`` converts texts that look like decimal numbers (sign, fraction, exponent; no blanks) next
to a number, in arithmetic, and between two headers compared by ``<`` and similar operators; and 'true' and 'false', in
any letter case, next to a boolean and as a condition. Two texts compared by ``=`` remain texts.

Arithmetic is exact for integers, except that ``/`` always gives a floating-point number, as in Artemis: ``5 / 2`` is
2.5. ``%`` has the sign of its left operand. ``+`` with a text on its left joins texts.

Differences from Artemis: an error inside an expression makes only that expression NULL, not the whole selector;
division by zero is NULL, not infinite; integers do not overflow below 4,096 bits, above that they are NULL, like joined
texts of more than 65,536 characters; conversion accepts '21.5' next to an integer, adds numeric texts instead of
joining them, and accepts only 'true' and 'false' as booleans.

An expression (``priority-expression``) gives a number. In it every text that looks like a number is one, ``+`` joins
nothing, and an integer that is too large is infinite.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Final, TypeAlias, final

from artemis_py.selector.grammar import BROKER_LIMITS, INTEGER_BITS_MAX, SelectorLimits, parse
from artemis_py.selector.tree import (
    And,
    Arithmetic,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Or,
    Property,
    Truth,
    texts_in,
)

# ---- operators on two values, neither of which is NULL ---------------------------------------------------------------

Value: TypeAlias = str | int | float | bool | None
Number: TypeAlias = int | float
"""Both are named, although type checkers accept an int as a float: a compiler would convert it."""
InOrder: TypeAlias = Callable[[Number | str, Number | str], bool]

TEXT_LENGTH_MAX: Final = 65_536
"""The maximum length of a computed text: otherwise a short selector could create expensive texts."""
INTEGER_LENGTH_MAX: Final = 1024
"""A longer text is read as a floating-point number, in time linear in its length."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?")


def number_of(value: Value) -> Number | None:
    """Return a number as it is, None for everything else: booleans are not numbers."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None


def number_in(value: Value) -> Number | None:
    """Return a number as it is, or a text as a decimal number; None for everything else."""
    if not isinstance(value, str):
        return number_of(value)
    if _NUMBER.fullmatch(value) is None:
        return None
    if len(value) > INTEGER_LENGTH_MAX:
        return float(value)
    try:
        return int(value)
    except ValueError:  # not an integer
        return float(value)


def _boolean_in(value: Value) -> bool | None:
    """Return a boolean as it is, or the texts 'true' and 'false' in any letter case as booleans; None for everything
    else.
    """
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower()) if len(value) <= len("false") else None
    return value if isinstance(value, bool) else None


def are_equal(left: Value, right: Value) -> bool:
    """``=`` between values as they are."""
    if type(left) is type(right):
        return left == right
    first, second = number_of(left), number_of(right)
    return first is not None and second is not None and first == second


def are_equal_converted(left: Value, right: Value) -> bool:
    """``=`` that converts a text next to a number or boolean; two texts stay texts."""
    if type(left) is type(right):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        truth, other = _boolean_in(left), _boolean_in(right)
        return truth is not None and truth is other
    first, second = number_in(left), number_in(right)
    return first is not None and second is not None and first == second


def are_ordered(left: Value, right: Value, in_order: InOrder) -> bool:
    """``<`` and similar operators on two numbers or two texts; texts are ordered by their characters."""
    if isinstance(left, str):
        return isinstance(right, str) and in_order(left, right)
    first, second = number_of(left), number_of(right)
    return first is not None and second is not None and in_order(first, second)


def are_ordered_converted(left: Value, right: Value, in_order: InOrder) -> bool:
    """``<`` and similar operators that treat texts which look like numbers as numbers."""
    first, second = number_in(left), number_in(right)
    if first is not None and second is not None:
        return in_order(first, second)
    return isinstance(left, str) and isinstance(right, str) and in_order(left, right)


def bounded(number: Number) -> Number | None:
    """A computed number; None for an integer that is too large."""
    return None if isinstance(number, int) and number.bit_length() > INTEGER_BITS_MAX else number


def saturated(number: Number) -> Number:
    """A computed number; an integer that is too large is infinite."""
    if not isinstance(number, int) or number.bit_length() <= INTEGER_BITS_MAX:
        return number
    return math.inf if number > 0 else -math.inf


def joined(left: str, right: Value) -> str | None:
    """``+`` with a text on its left; None if the result is too long."""
    text = ("true" if right else "false") if isinstance(right, bool) else str(right)
    return left + text if len(left) + len(text) <= TEXT_LENGTH_MAX else None


def remainder(left: Number, right: Number) -> Number:
    """``%``: the sign is that of ``left``. Raises ZeroDivisionError or ValueError where there is no result."""
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) % abs(right)
        return -size if left < 0 else size
    return math.fmod(left, right)


Lookup: TypeAlias = Callable[[str], Value]
"""Returns the value of a header or built-in by its name as written, or None."""

NODES_PER_UNIT: Final = 4
"""How many nodes of a tree are evaluated in about a microsecond."""
_HEADERS_JOINED_PER_UNIT: Final = 4
"""How many headers of 1,024 bytes ``+`` copies meanwhile."""

_Evaluator: TypeAlias = Callable[[Lookup], Value]
_Condition: TypeAlias = Callable[[Lookup], bool | None]

_ORDERS: Final[dict[str, InOrder]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CALCULATIONS: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": remainder,
}


@final
class Program:
    """A compiled selector. Equal selectors share one, so its identity shows that they are equal.

    One evaluation costs about ``units`` microseconds compiled, and ``units_per_kb`` for each 1,024 bytes of the
    message's headers: no part costs more than the length of its texts, and a text joined by ``+`` counts with all
    headers in it.
    """

    __slots__ = ("_table", "condition", "identifiers", "key", "units", "units_per_kb", "users")

    def __init__(
        self,
        key: bytes,
        identifiers: frozenset[str],
        condition: _Condition,
        units: int,
        units_per_kb: int,
        table: dict[bytes, Program],
    ) -> None:
        self.key: Final = key
        self.identifiers: Final = identifiers
        self.condition: Final = condition
        self.units: Final = units
        self.units_per_kb: Final = units_per_kb
        self.users = 0
        self._table: Final = table

    def release(self) -> None:
        """A selector releases it; without any selector it is forgotten."""
        self.users -= 1
        if not self.users:
            self._table.pop(self.key, None)


@final
class Selector:
    """A condition ready for evaluation, with its text. Immutable; knows nothing of messages."""

    __slots__ = ("program", "text")

    def __init__(self, text: str, program: Program) -> None:
        self.text: Final = text
        self.program: Final = program
        program.users += 1

    def __del__(self) -> None:
        self.program.release()

    @property
    def identifiers(self) -> frozenset[str]:
        """The names that it uses."""
        return self.program.identifiers

    def matches(self, lookup: Lookup) -> bool:
        """Return whether the condition is TRUE. Raises only what ``lookup`` raises."""
        return self.program.condition(lookup) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


@final
class Expression:
    """A number made of a message's headers. Immutable; knows nothing of messages. ``units`` and
    ``units_per_kb`` are as those of a program.
    """

    __slots__ = ("_evaluate", "units", "units_per_kb")

    def __init__(self, evaluate: _Evaluator, units: int, units_per_kb: int) -> None:
        self._evaluate: Final = evaluate
        self.units: Final = units
        self.units_per_kb: Final = units_per_kb

    def value(self, lookup: Lookup) -> Number | None:
        """The number; None where there is none. Raises only what ``lookup`` raises."""
        return number_in(self._evaluate(lookup))


_programs: Final[dict[bytes, Program]] = {}
"""The programs of all selectors, by their text without blanks, comments and the case of keywords."""


def compile_selector(text: str, limits: SelectorLimits = BROKER_LIMITS) -> Selector:
    """Parse ``text`` into a selector.

    Raises :class:`~artemis_py.errors.SelectorError` with line and column, also for an empty text (the caller handles a
    missing selector, which means every message) and beyond ``limits``.
    """
    parsed = parse(text, limits)
    program = _programs.get(parsed.key)
    if program is None:
        compiler = _Compiler(parsed.convert_strings)
        condition = compiler.condition(parsed.tree)
        units = 1 + compiler.node_count // NODES_PER_UNIT + compiler.units
        units_per_kb = compiler.units_per_kb
        if parsed.convert_strings:
            units_per_kb += compiler.node_count  # each may read a number of any length
        program = Program(parsed.key, parsed.identifiers, condition, units, units_per_kb, _programs)
        _programs[parsed.key] = program
    return Selector(text, program)


def compile_expression(text: str, limits: SelectorLimits = BROKER_LIMITS) -> Expression:
    """Parse ``text`` into an expression that gives a number.

    Raises :class:`~artemis_py.errors.SelectorError` with line and column, also for an empty text and beyond ``limits``.
    """
    compiler = _Compiler(True, as_number=True)
    evaluate = compiler.value(parse(text, limits, as_number=True).tree)
    units = 1 + compiler.node_count // NODES_PER_UNIT
    return Expression(evaluate, units, compiler.units_per_kb + compiler.node_count)


@final
class _Compiler:
    """Makes one function per node; chooses between the two sets of comparisons once."""

    __slots__ = ("_as_number", "_convert", "_equal", "_number", "_ordered", "node_count", "units", "units_per_kb")

    def __init__(self, convert_strings: bool, *, as_number: bool = False) -> None:
        self.node_count = 0
        self.units = 0
        """Units in addition to those of the nodes."""
        self.units_per_kb = 0
        self._as_number: Final = as_number
        self._convert: Final = convert_strings
        self._number: Final = number_in if convert_strings else number_of
        self._equal: Final = are_equal_converted if convert_strings else are_equal
        self._ordered: Final = are_ordered_converted if convert_strings else are_ordered

    def condition(self, node: Node) -> _Condition:
        """Compile a node that is a condition by its form."""
        self.node_count += 1
        match node:
            case Comparison():
                return self._comparison(node)
            case Between():
                return self._between(node)
            case In():
                return _in(node)
            case Like():
                return self._like(node)
            case IsNull():
                return self._is_null(node)
            case Truth():
                return self._truth(node)
            case Not():
                return _not(self.condition(node.condition))
            case And():
                return _all([self.condition(part) for part in node.conditions], stop_at=False)
            case Or():
                return _all([self.condition(part) for part in node.conditions], stop_at=True)
            case Literal():
                return _constant(node.value is True, known=node.value is not None)
        raise TypeError(f"{type(node).__name__} is not a condition")  # the parser lets none through

    def value(self, node: Node) -> _Evaluator:
        """Compile any node."""
        self.node_count += 1
        match node:
            case Literal():
                value = node.value
                return lambda _: value
            case Property():
                name = node.name
                return lambda lookup: lookup(name)
            case Negative():
                return self._negative(node)
            case Arithmetic():
                return self._arithmetic(node)
        return self.condition(node)

    def _comparison(self, node: Comparison) -> _Condition:
        if node.operator in _ORDERS:
            return self._order(node)
        left, right = node.left, node.right
        if isinstance(left, Literal):
            left, right = right, left
        wanted = node.operator == "="
        if isinstance(left, Property) and isinstance(right, Literal):
            text = right.value
            if isinstance(text, str) and not self._convert:
                return _equals_text(left.name, text, wanted)
        first, second, equal = self.value(left), self.value(right), self._equal

        def compare(lookup: Lookup) -> bool | None:
            a = first(lookup)
            if a is None:
                return None
            b = second(lookup)
            return None if b is None else equal(a, b) is wanted

        return compare

    def _order(self, node: Comparison) -> _Condition:
        left, right = self.value(node.left), self.value(node.right)
        ordered, in_order = self._ordered, _ORDERS[node.operator]

        def compare(lookup: Lookup) -> bool | None:
            a = left(lookup)
            if a is None:
                return None
            b = right(lookup)
            return None if b is None else ordered(a, b, in_order)

        return compare

    def _between(self, node: Between) -> _Condition:
        """BETWEEN is ``>= low AND <= high``, NOT BETWEEN is ``< low OR > high``: neither is the other's NOT."""
        operand, low, high = self.value(node.operand), self.value(node.low), self.value(node.high)
        ordered = self._ordered
        negated = node.negated
        at_low, at_high = (operator.lt, operator.gt) if negated else (operator.ge, operator.le)

        def compare(lookup: Lookup) -> bool | None:
            value, lowest, highest = operand(lookup), low(lookup), high(lookup)
            if value is None:
                return None
            first = None if lowest is None else ordered(value, lowest, at_low)
            second = None if highest is None else ordered(value, highest, at_high)
            if first is negated or second is negated:
                return negated
            return None if first is None or second is None else not negated

        return compare

    def _like(self, node: Like) -> _Condition:
        operand, pattern = self.value(node.operand), Pattern(node.pattern, node.escape)
        negated = node.negated
        headers, characters = texts_in(node.operand)
        self.units += pattern.units + (pattern.units_per_kb * characters >> 10)
        self.units_per_kb += pattern.units_per_kb * headers

        def looks_like(lookup: Lookup) -> bool | None:
            value = operand(lookup)
            if value is None:
                return None
            return (isinstance(value, str) and pattern.fits(value)) is not negated

        return looks_like

    def _is_null(self, node: IsNull) -> _Condition:
        operand, negated = self.value(node.operand), node.negated
        return lambda lookup: (operand(lookup) is None) is not negated

    def _truth(self, node: Truth) -> _Condition:
        name, equal = node.operand.name, self._equal

        def truth(lookup: Lookup) -> bool | None:
            value = lookup(name)
            return None if value is None else equal(value, True)

        return truth

    def _negative(self, node: Negative) -> _Evaluator:
        operand, number = self.value(node.operand), self._number

        def negative(lookup: Lookup) -> Value:
            value = number(operand(lookup))
            return None if value is None else -value

        return negative

    def _arithmetic(self, node: Arithmetic) -> _Evaluator:
        left, right, number = self.value(node.left), self.value(node.right), self._number
        calculate, joins = _CALCULATIONS[node.operator], node.operator == "+" and not self._as_number
        limited = saturated if self._as_number else bounded
        headers = texts_in(node)[0] if joins else 0
        self.units_per_kb += headers if self._convert else headers // _HEADERS_JOINED_PER_UNIT

        def arithmetic(lookup: Lookup) -> Value:
            a = left(lookup)
            b = right(lookup)
            if a is None or b is None:
                return None
            first, second = number(a), number(b)
            try:
                if first is not None and second is not None:
                    return limited(calculate(first, second))
                return joined(a, b) if joins and isinstance(a, str) else None
            except (ArithmeticError, ValueError):
                return None

        return arithmetic


def _equals_text(name: str, text: str, wanted: bool) -> _Condition:
    """The condition of most selectors, without a detour."""

    def equals(lookup: Lookup) -> bool | None:
        value = lookup(name)
        return None if value is None else (value == text) is wanted

    return equals


def _constant(truth: bool, *, known: bool) -> _Condition:
    return lambda _: truth if known else None


def _in(node: In) -> _Condition:
    name, texts, negated = node.operand.name, node.texts, node.negated

    def contains(lookup: Lookup) -> bool | None:
        value = lookup(name)
        return (value in texts) is not negated if isinstance(value, str) else None

    return contains


def _not(condition: _Condition) -> _Condition:
    def negation(lookup: Lookup) -> bool | None:
        value = condition(lookup)
        return None if value is None else not value

    return negation


def _all(conditions: list[_Condition], stop_at: bool) -> _Condition:
    """AND stops at the first FALSE, OR at the first TRUE; else one NULL makes the whole NULL."""

    def junction(lookup: Lookup) -> bool | None:
        result: bool | None = not stop_at
        for condition in conditions:
            value = condition(lookup)
            if value is stop_at:
                return stop_at
            if value is None:
                result = None
        return result

    return junction


# ---- LIKE patterns ---------------------------------------------------------------------------------------------------
#
# ``%`` stands for any text, ``_`` for any one character, line breaks included. The ESCAPE character makes a following
# ``%``, ``_`` or escape character plain text; before anything else it is itself plain text or, if ``%`` or ``_`` is the
# escape character, keeps its meaning.


_TRIES_MAX: Final = 64
"""Parts of a run that are compared at one place after the other, before all places are followed at once."""


@final
class Pattern:
    """A compiled LIKE pattern: a row of runs with ``%`` between them.

    The first and the last run have fixed places; each other run matches at its first place. So each character of a text
    is visited once, and a match costs at most ``units`` plus ``units_per_kb`` for each 1,024 characters of the text (in
    units of about a microsecond).
    """

    __slots__ = ("_between", "_first", "_is_fixed", "_last", "units", "units_per_kb")

    def __init__(self, pattern: str, escape: str | None) -> None:
        runs = _runs(pattern, escape)
        self._is_fixed: Final = len(runs) == 1
        self._first: Final = _Run(runs[0])
        self._last: Final = _Run(runs[-1])
        between = [_plain_or_run(run) for run in runs[1:-1] if run]
        self._between: Final = between
        """Most are plain texts, and there may be thousands."""
        steps = len(between) + self._first.part_count + self._last.part_count
        self.units: Final = steps // 8 + sum([0 if isinstance(one, str) else one.units for one in between])
        self.units_per_kb: Final = 1 + max(
            [_repeats(one) if isinstance(one, str) else one.units_per_kb for one in between] or [0]
        )

    def fits(self, text: str) -> bool:
        """Does all of the text match?"""
        first, last = self._first, self._last
        if self._is_fixed:
            return len(text) == first.length and first.is_at(text, 0)
        end = len(text) - last.length
        if end < first.length or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        start = first.length
        for run in self._between:
            if isinstance(run, str):
                place = text.find(run, start, end)
                length = len(run)
            else:
                place = run.find(text, start, end)
                length = run.length
            if place < 0:
                return False
            start = place + length
        return True


def _runs(pattern: str, escape: str | None) -> list[list[str | None]]:
    """Cut at each ``%``; None stands for any one character."""
    runs: list[list[str | None]] = [[]]
    place = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == escape and place < len(pattern) and pattern[place] in ("%", "_", escape):
            runs[-1].append(pattern[place])
            place += 1
        elif char == "%":
            runs.append([])
        else:
            runs[-1].append(None if char == "_" else char)
    return runs


def _repeats(text: str) -> int:
    """How often the beginning of a text repeats itself at most; ``find`` may compare this many characters at each place
    (its length by the period: Knuth, Morris and Pratt's table of borders).
    """
    most = border = 0
    borders = [0] * len(text)
    for place in range(1, len(text)):
        while border and text[place] != text[border]:
            border = borders[border - 1]
        if text[place] == text[border]:
            border += 1
        borders[place] = border
        most = max(most, (place + 1) // (place + 1 - border))
    return most if most > 2 else 0


def _plain_or_run(characters: list[str | None]) -> str | _Run:
    plain = "".join(char for char in characters if char is not None)
    return plain if len(plain) == len(characters) else _Run(characters)


@final
class _Run:
    """Characters one after another, some of which may be any."""

    __slots__ = ("_anchor", "_characters", "_parts", "length", "part_count", "units", "units_per_kb")

    def __init__(self, characters: list[str | None]) -> None:
        self.length: Final = len(characters)
        parts: list[tuple[int, str]] = []
        begins = True
        for place, char in enumerate(characters):
            if char is None:
                begins = True
                continue
            if begins:
                parts.append((place, char))
                begins = False
            else:
                offset, text = parts[-1]
                parts[-1] = offset, text + char
        self._parts: Final = parts
        """The plain texts between characters that may be any, each with its place."""
        self.part_count: Final = len(parts)
        self._anchor: Final = max(parts, key=_length, default=(0, ""))
        self._characters: Final = characters if len(parts) > 1 else []
        distinct = len({char for char in characters if char is not None}) if len(parts) > 1 else 0
        self.units: Final = 2 + distinct
        self.units_per_kb: Final = _repeats(self._anchor[1]) + (
            60 + self.length // 16 + distinct // 4 if len(parts) > 1 else 0
        )

    def is_at(self, text: str, place: int) -> bool:
        """Is the run at this place of the text? The text is long enough."""
        return all(text.startswith(part, place + offset) for offset, part in self._parts)

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from ``start`` on where the run fits in before ``end``, or -1."""
        last = end - self.length
        if last < start:
            return -1
        offset, anchor = self._anchor
        tries = _TRIES_MAX
        place = start + offset - 1
        while (place := text.find(anchor, place + 1, last + offset + len(anchor))) >= 0:
            if tries <= 0 and self._characters:
                return self._find_in_bits(text, place - offset, end)
            if self.is_at(text, place - offset):
                return place - offset
            tries -= self.part_count
        return -1

    def _find_in_bits(self, text: str, start: int, end: int) -> int:
        """Follow all places at which the run may have begun at once, as bits of one number (Baeza-Yates and Gonnet, "A
        New Approach to Text Searching", shift-and).
        """
        wanted = {char for _, part in self._parts for char in part}
        if any(text.find(char, start, end) < 0 for char in wanted):
            return -1
        masks = self._masks(wanted)
        anything = masks.pop("")
        accepts = 1 << (self.length - 1)
        state = 0
        for place in range(start, end):
            state = (state << 1 | 1) & masks.get(text[place], anything)
            if state & accepts:
                return place - self.length + 1
        return -1

    def _masks(self, wanted: set[str]) -> dict[str, int]:
        """For each character the places of the run where it may stand, as bits; under "" those for any other."""
        size_bytes = self.length // 8 + 1
        bits = {char: bytearray(size_bytes) for char in wanted}
        anything = bits[""] = bytearray(size_bytes)
        for place, char in enumerate(self._characters):
            one = anything if char is None else bits[char]
            one[place >> 3] |= 1 << (place & 7)
        others = int.from_bytes(anything, "little")
        return {char: int.from_bytes(one, "little") | others for char, one in bits.items()}


def _length(part: tuple[int, str]) -> int:
    return len(part[1])
