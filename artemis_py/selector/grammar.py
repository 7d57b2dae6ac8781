"""Selector text to tokens, and tokens to a tree.

::

    selector    = { prefix } condition
    prefix      = "convert_string_expressions:" | "hyphenated_props:" | "no_convert_string_expressions:"
                | "no_hyphenated_props:"                       of two that contradict each other the last counts
    condition   = conjunction { OR conjunction }
    conjunction = negation { AND negation }
    negation    = NOT negation | equality
    equality    = comparison { ("=" | "<>") comparison | IS [NOT] NULL }
    comparison  = sum { ("<" | "<=" | ">" | ">=") sum
                      | [NOT] BETWEEN sum AND sum
                      | [NOT] LIKE text [ESCAPE text]
                      | [NOT] IN "(" text { "," text } ")" }
    sum         = product { ("+" | "-") product }
    product     = operand { ("*" | "/" | "%") operand }
    operand     = ("+" | "-") operand | literal | name | "(" condition ")"
    literal     = text | number | TRUE | FALSE | NULL

An expression, which stands where a number is expected (``priority-expression``), is a ``sum`` with the same prefixes.
In it there are no conditions, and no literals but numbers.

Further rules, as in Artemis: operands of AND, OR and NOT must be conditions or names; operands of ``<`` and similar
operators, and the bounds of BETWEEN, must not be text literals or conditions; ``= NULL`` is refused (``IS NULL`` is
meant); IN needs a name on its left. There are no functions, and XPATH and XQUERY are refused.

Difference from Artemis: there, NOT binds like a minus sign and ``NOT a = 'x'`` means ``(NOT a) = 'x'``, which is never
true. Here NOT applies to the whole comparison, as in SQL.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final, NoReturn, final

from artemis_py.errors import SelectorError
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
    is_condition,
)

# ---- tokens ----------------------------------------------------------------------------------------------------------
#
# Names are letters, digits, ``_`` and ``$``, not beginning with a digit, and are case-sensitive; with the prefix
# ``hyphenated_props:`` also ``-``. Any other name is in double quotes, with ``""`` for a quote in it. Keywords are
# recognised in any letter case. Texts are in single quotes with ``''`` for a quote in them. Numbers are decimal,
# hexadecimal (``0x1F``) or octal (``017``), each with or without a final ``L``, or floating-point (``1.5``, ``5.``,
# ``.5``, ``1E-3``). ``-- …`` to the end of the line and ``/* … */`` are comments.
#
# Unlike Artemis, it accepts letters of any alphabet in names, quoted names with ``hyphenated_props:``, ``L`` after
# octal and hexadecimal numbers, integers of any size, and a line comment at the very end of the text.

INTEGER_BITS_MAX: Final = 4096
"""The maximum size of an integer."""

_KEYWORDS: Final = frozenset(
    {
        "NOT", "AND", "OR", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "TRUE", "FALSE", "NULL", "XPATH", "XQUERY",
    }
)  # fmt: skip

_NAME: Final = "a name"
_TEXT: Final = "a text"
_NUMBER: Final = "a number"
_END: Final = "the end"

_TOKENS: Final = r"""
    (?P<blank>(?:[ \t\n\r\f]+|--[^\n\r]*|/\*.*?\*/)+)
  | (?P<comment>/\*)
  | (?P<name>{name})
  | (?P<quoted>"[^"]*(?:""[^"]*)*")
  | (?P<text>'[^']*(?:''[^']*)*')
  | (?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<hex>0[xX][0-9a-fA-F]+[lL]?)
  | (?P<integer>[0-9]+[lL]?)
  | (?P<operator><>|<=|>=|[=<>+\-*/%(),])
"""
_STRICT: Final = re.compile(_TOKENS.replace("{name}", r"[^\W\d][\w$]*|\$[\w$]*"), re.VERBOSE | re.DOTALL)
_HYPHENATED: Final = re.compile(_TOKENS.replace("{name}", r"[^\W\d][\w$-]*|\$[\w$-]*"), re.VERBOSE | re.DOTALL)

_OTHER_LANGUAGES: Final = {
    "!=": "'<>'",
    "==": "'='",
    "&&": "AND",
    "||": "OR",
    "!": "NOT",
}


@final
class _Token:
    """``kind`` is a keyword in upper case, an operator, or one of _NAME, _TEXT, _NUMBER, _END.

    ``value`` is the name, the text without quotes or the number; None for all others. ``image`` is the token as
    written, ``offset`` where it begins in the selector.
    """

    __slots__ = ("kind", "value", "image", "offset")

    def __init__(self, kind: str, value: str | int | float | None, image: str, offset: int) -> None:
        self.kind: Final = kind
        self.value: Final = value
        self.image: Final = image
        self.offset: Final = offset


def _fail(message: str, text: str, offset: int) -> NoReturn:
    """Raise SelectorError with the line and column of ``offset``."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    raise SelectorError(message, line, column)


def _tokens(text: str, start: int, hyphenated: bool) -> list[_Token]:
    """Split ``text`` from ``start`` on into tokens, the last one of kind _END. Raises SelectorError."""
    pattern = _HYPHENATED if hyphenated else _STRICT
    found: list[_Token] = []
    offset = start
    while offset < len(text):
        match = pattern.match(text, offset)
        if match is None:
            _refuse(text, offset)
        kind = str(match.lastgroup)
        if kind != "blank":
            found.append(_token(kind, match.group(), text, offset, found))
        offset = match.end()
    found.append(_Token(_END, None, "", offset))
    return found


def _token(kind: str, image: str, text: str, offset: int, before: list[_Token]) -> _Token:
    if kind == "operator":
        if image == "=" and before and before[-1].image == "=" and before[-1].offset == offset - 1:
            _fail("'==' is not an operator; write '='", text, offset - 1)
        return _Token(image, None, image, offset)
    if kind == "comment":
        _fail("a comment is not closed, '*/' expected", text, offset)
    if kind == "name":
        keyword = image.upper()
        if keyword in _KEYWORDS and image.isascii():
            return _Token(keyword, None, image, offset)
        return _Token(_NAME, image, image, offset)
    if kind == "quoted":
        return _Token(_NAME, image[1:-1].replace('""', '"'), image, offset)
    if kind == "text":
        return _Token(_TEXT, image[1:-1].replace("''", "'"), image, offset)
    if before and before[-1].kind == _NUMBER and before[-1].offset + len(before[-1].image) == offset:
        _fail(f"'{before[-1].image}{image}' is not a number", text, before[-1].offset)
    return _Token(_NUMBER, _number(kind, image, text, offset), image, offset)


def _number(kind: str, image: str, text: str, offset: int) -> int | float:
    try:
        if kind == "float":
            return float(image)
        digits = image.rstrip("lL")
        number = int(digits, 16 if kind == "hex" else 8 if digits.startswith("0") else 10)
    except ValueError:
        if image.startswith("0"):
            _fail(f"{image!r} is not a number: a leading 0 means octal", text, offset)
        _fail(f"a number of {len(image):,} digits is too long", text, offset)
    if number.bit_length() > INTEGER_BITS_MAX:
        _fail(f"a number of {len(image):,} digits is too long", text, offset)
    return number


def _refuse(text: str, offset: int) -> NoReturn:
    """Raise SelectorError for a place where no token begins."""
    rest = text[offset : offset + 2]
    if rest[0] == "'":
        _fail('a text is not closed, "\'" expected', text, offset)
    if rest[0] == '"':
        _fail("a name is not closed, '\"' expected", text, offset)
    for written in (rest, rest[0]):
        if written in _OTHER_LANGUAGES:
            _fail(f"{written!r} is not an operator; write {_OTHER_LANGUAGES[written]}", text, offset)
    if rest[0] in ".:":
        _fail(f"a name with {rest[0]!r} in it must be in double quotes", text, offset)
    _fail(f"unexpected character {rest[0]!r}", text, offset)


# ---- tree ------------------------------------------------------------------------------------------------------------

MAX_NESTING: Final = 100
"""How deep parentheses, signs, NOTs and chains of arithmetic or comparisons may nest. AND and OR do not count."""

_CONDITION: Final = 1
_CONJUNCTION: Final = 2
_NEGATION: Final = 3
_EQUALITY: Final = 4
_COMPARISON: Final = 5
_SUM: Final = 6
_PRODUCT: Final = 7

_LEVELS: Final = {
    "OR": _CONDITION,
    "AND": _CONJUNCTION,
    "=": _EQUALITY,
    "<>": _EQUALITY,
    "IS": _EQUALITY,
    "<": _COMPARISON,
    "<=": _COMPARISON,
    ">": _COMPARISON,
    ">=": _COMPARISON,
    "BETWEEN": _COMPARISON,
    "LIKE": _COMPARISON,
    "IN": _COMPARISON,
    "NOT": _COMPARISON,  # after an operand only NOT BETWEEN, NOT LIKE and NOT IN can follow
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}

_PUNCTUATION: Final = frozenset({"(", ")", ",", _END})
_PREFIX: Final = re.compile(r"\s*(no_)?(convert_string_expressions|hyphenated_props):")


@final
class SelectorLimits:
    """The limits of a selector: bytes of its text (UTF-8), including prefixes, and terms: names, values, operators and
    keywords.
    """

    __slots__ = ("bytes_max", "terms_max")

    def __init__(self, bytes_max: int, terms_max: int) -> None:
        self.bytes_max: Final = bytes_max
        self.terms_max: Final = terms_max


BROKER_LIMITS: Final = SelectorLimits(65_536, 16_384)
"""For filters in the broker's configuration."""


CLIENT_LIMITS: Final = SelectorLimits(8_192, 1_000)
"""For selectors of clients, unless the acceptor sets others."""


@final
class Parsed:
    """A selector's tree, the names it uses, and whether texts that look like numbers are numbers. ``key`` is the same
    for selectors that differ only in blanks, comments and the case of keywords.
    """

    __slots__ = ("convert_strings", "identifiers", "key", "tree")

    def __init__(self, key: bytes, tree: Node, identifiers: frozenset[str], convert_strings: bool) -> None:
        self.key: Final = key
        self.tree: Final = tree
        self.identifiers: Final = identifiers
        self.convert_strings: Final = convert_strings


def parse(text: str, limits: SelectorLimits = BROKER_LIMITS, *, as_number: bool = False) -> Parsed:
    """Parse a selector or, ``as_number``, an expression. Raises SelectorError, which says what was expected and
    where.
    """
    size_bytes = len(text.encode(errors="surrogatepass"))
    if size_bytes > limits.bytes_max:
        _fail(f"it has {size_bytes:,} bytes, at most {limits.bytes_max:,} are allowed", text, 0)
    if not text or text.isspace():
        _fail("it is empty" if as_number else "it is empty; to get every message, leave it out", text, 0)
    convert_strings = False
    hyphenated = False
    start = 0
    while prefix := _PREFIX.match(text, start):
        if prefix[2] == "hyphenated_props":
            hyphenated = prefix[1] is None
        else:
            convert_strings = prefix[1] is None
        start = prefix.end()
    found = _tokens(text, start, hyphenated)
    count = sum([token.kind not in _PUNCTUATION for token in found])
    if count > limits.terms_max:
        _fail(f"it has {count:,} names, values and operators, at most {limits.terms_max:,} are allowed", text, 0)
    parser = _Parser(text, found, as_number)
    tree = parser.expression() if as_number else parser.selector()
    return Parsed(_key(found, convert_strings), tree, frozenset(parser.identifiers), convert_strings)


def _key(found: list[_Token], convert_strings: bool) -> bytes:
    words = [token.kind if token.value is None else f"{token.kind} {token.value!r}" for token in found]
    return blake2b(f"{convert_strings} {' '.join(words)}".encode(), digest_size=16).digest()


@final
class _Parser:
    """Recursive descent, with one method for all levels of binary operators."""

    __slots__ = ("identifiers", "_as_number", "_text", "_tokens", "_place", "_token", "_nesting")

    def __init__(self, text: str, found: list[_Token], as_number: bool) -> None:
        self.identifiers: Final[set[str]] = set()
        self._as_number: Final = as_number
        self._text: Final = text
        self._tokens: Final = found
        self._place = 0
        self._token = found[0]
        self._nesting = 0

    def selector(self) -> Node:
        start = self._token.offset
        tree = self._expression(_CONDITION)
        if self._token.kind != _END:
            self._fail_after_operand("AND, OR or the end of the selector")
        return self._condition(tree, start)

    def expression(self) -> Node:
        tree = self._expression(_SUM)
        if self._token.kind != _END:
            self._fail_after_operand("+, -, *, /, % or the end of the expression")
        return tree

    def _expression(self, level_min: int) -> Node:
        """Parse operands joined by operators that bind at ``level_min`` or tighter."""
        start = self._token.offset
        self._enter()
        left = self._negation() if self._token.kind == "NOT" and level_min <= _NEGATION else self._operand()
        while _LEVELS.get(self._token.kind, 0) >= level_min:
            left = self._operation(left, start)
            if left.height > MAX_NESTING:
                self._fail_nesting(start)
        self._nesting -= 1
        return left

    def _operation(self, left: Node, start: int) -> Node:
        kind = self._token.kind
        level = _LEVELS[kind]
        if level <= _CONJUNCTION:
            return self._junction(left, start)
        if kind in ("=", "<>"):
            return self._equality(left, start)
        if kind == "IS":
            return self._is_null(left)
        if level == _COMPARISON:
            return self._comparison(left, start)
        self._advance()
        return Arithmetic(kind, self._value(left, start), self._value_expression(level + 1))

    def _junction(self, left: Node, start: int) -> Node:
        kind = self._token.kind
        conditions = [self._condition(left, start)]
        while self._token.kind == kind:
            self._advance()
            start = self._token.offset
            conditions.append(self._condition(self._expression(_LEVELS[kind] + 1), start))
        return Or(conditions) if kind == "OR" else And(conditions)

    def _negation(self) -> Node:
        self._advance()
        start = self._token.offset
        return Not(self._condition(self._expression(_NEGATION), start))

    def _equality(self, left: Node, start: int) -> Node:
        operator = self._advance()
        right_start = self._token.offset
        right = self._expression(_COMPARISON)
        for operand, offset in ((left, start), (right, right_start)):
            if isinstance(operand, Literal) and operand.value is None:
                wanted = "IS NULL" if operator.kind == "=" else "IS NOT NULL"
                _fail(f"no value equals NULL; write {wanted}", self._text, offset)
        return Comparison(operator.kind, left, right)

    def _is_null(self, operand: Node) -> Node:
        self._advance()
        negated = self._accept("NOT")
        self._expect("NULL", "NULL" if negated else "NULL or NOT NULL")
        return IsNull(operand, negated)

    def _comparison(self, left: Node, start: int) -> Node:
        """Parse what follows an operand at this level, LIKE, BETWEEN and IN included."""
        negated = self._accept("NOT")
        operator = self._token
        if operator.kind == "IN":
            return self._in(left, start, negated)
        if operator.kind == "LIKE":
            return self._like(self._value(left, start), negated)
        if operator.kind == "BETWEEN":
            self._advance()
            low = self._ordered_expression()
            self._expect("AND", "AND between the two bounds")
            return Between(self._ordered(left, start), low, self._ordered_expression(), negated)
        if negated:
            self._fail_expected("BETWEEN, LIKE or IN after NOT")
        self._advance()
        return Comparison(operator.kind, self._ordered(left, start), self._ordered_expression())

    def _in(self, left: Node, start: int, negated: bool) -> Node:
        if not isinstance(left, Property):
            _fail("IN needs a name on its left", self._text, start)
        self._advance()
        self._expect("(", "'('")
        texts = {self._quoted_text()}
        while self._accept(","):
            texts.add(self._quoted_text())
        self._expect(")", "',' or ')'")
        return In(left, frozenset(texts), negated)

    def _like(self, left: Node, negated: bool) -> Node:
        self._advance()
        pattern = self._quoted_text()
        escape = None
        if self._accept("ESCAPE"):
            offset = self._token.offset
            escape = self._quoted_text()
            if len(escape) != 1:
                _fail(f"ESCAPE expects exactly one character, found {escape!r}", self._text, offset)
        return Like(left, pattern, escape, negated)

    def _operand(self) -> Node:
        token = self._token
        if token.kind in ("+", "-"):
            return self._signed()
        if token.kind == "(":
            self._advance()
            inner = self._expression(_SUM if self._as_number else _CONDITION)
            if self._token.kind != ")":
                self._fail_after_operand("')' or an operator")
            self._advance()
            return inner
        if token.kind == _NAME:
            self._advance()
            self.identifiers.add(str(token.value))
            return Property(str(token.value))
        if token.kind == _NUMBER or (token.kind == _TEXT and not self._as_number):
            self._advance()
            return Literal(token.value)
        if token.kind in ("XPATH", "XQUERY"):
            _fail(f"{token.kind} is not supported: a selector sees headers, not the body", self._text, token.offset)
        if self._as_number:
            self._fail_expected("a name, a number or '('")
        if token.kind not in ("TRUE", "FALSE", "NULL"):
            self._fail_expected("a name, a text, a number or '('")
        self._advance()
        return Literal(None if token.kind == "NULL" else token.kind == "TRUE")

    def _signed(self) -> Node:
        sign = self._advance()
        start = self._token.offset
        self._enter()
        operand = self._value(self._operand(), start)
        self._nesting -= 1
        return Negative(operand) if sign.kind == "-" else operand

    def _condition(self, node: Node, start: int) -> Node:
        if isinstance(node, Property):
            return Truth(node)
        if not is_condition(node):
            _fail("a condition is expected here, such as a comparison, found a value", self._text, start)
        return node

    def _value(self, node: Node, start: int) -> Node:
        if is_condition(node) and not isinstance(node, Literal):
            _fail("a value is expected here, found a condition", self._text, start)
        return node

    def _value_expression(self, level_min: int) -> Node:
        start = self._token.offset
        return self._value(self._expression(level_min), start)

    def _ordered(self, node: Node, start: int) -> Node:
        if isinstance(node, Literal) and not isinstance(node.value, (int, float)):
            _fail("'<', '>' and BETWEEN compare numbers; for a text use '=', '<>', LIKE or IN", self._text, start)
        if is_condition(node):
            _fail("'<', '>' and BETWEEN compare numbers, found a condition", self._text, start)
        return node

    def _ordered_expression(self) -> Node:
        start = self._token.offset
        return self._ordered(self._expression(_SUM), start)

    def _quoted_text(self) -> str:
        return str(self._expect(_TEXT, "a text in single quotes").value)

    def _advance(self) -> _Token:
        token = self._token
        self._place += 1
        self._token = self._tokens[self._place]
        return token

    def _accept(self, kind: str) -> bool:
        if self._token.kind != kind:
            return False
        self._advance()
        return True

    def _expect(self, kind: str, expected: str) -> _Token:
        if self._token.kind != kind:
            self._fail_expected(expected)
        return self._advance()

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._fail_nesting(self._token.offset)

    def _fail_nesting(self, offset: int) -> NoReturn:
        _fail(f"it is nested deeper than {MAX_NESTING} levels", self._text, offset)

    def _fail_expected(self, expected: str) -> NoReturn:
        end = "the end of the expression" if self._as_number else "the end of the selector"
        found = end if self._token.kind == _END else f"{self._token.image!r}"
        _fail(f"expected {expected}, found {found}", self._text, self._token.offset)

    def _fail_after_operand(self, expected: str) -> NoReturn:
        before = self._tokens[self._place - 1]
        if self._token.kind == "(" and before.kind == _NAME:
            what = "an expression" if self._as_number else "a selector"
            _fail(f"{what} has no functions, found {before.image!r} with '('", self._text, before.offset)
        self._fail_expected(expected)
