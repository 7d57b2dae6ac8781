"""Explains why the XSD refuses a tree: every finding, with the nearest valid name.

libxml2 stops at the first wrong child of an element, and xmlschema skips repeated ones. So this module walks the tree
itself, with the declarations that xmlschema reads from the XSD; only a wrong order is left to xmlschema. Imported only
when something is wrong.
"""

from __future__ import annotations

import functools
from typing import Any, Final, final

import xmlschema
from lxml import etree
from xmlschema.validators import XMLSchemaChildrenValidationError, XsdElement

from artemis_py.config.problems import Problems, nearest, unless_newer
from artemis_py.config.xml.source import CORE_NAMESPACE, Element, Source, local_name, schema_file

_CORE: Final = f"{{{CORE_NAMESPACE}}}core"
_XML_ATTRIBUTE: Final = "{http://www.w3.org/XML/1998/namespace}"

_TYPES: Final = {
    "boolean": "true or false",
    "int": "a whole number from -2147483648 to 2147483647, without a unit",
    "long": "a whole number of 64 bits, without a unit",
    "integer": "a whole number, without a unit",
    "double": "a number such as 1.5",
    "NCName": "a name that begins with a letter, without spaces and colons",
}

_NUMBERS: Final = ("int", "long", "integer", "double")
_TRUTH_WORDS: Final = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_LIST_LENGTH_MAX: Final = 16

# Attributes that people write where an element belongs.
_AS_ELEMENT: Final = {
    ("queue", "durable"): "<durable>false</durable> inside the queue",
    ("queue", "filter"): '<filter string="…"/> inside the queue',
    ("queue", "user"): "<user>…</user> inside the queue",
}


@functools.cache
def explaining_schema() -> Any:
    """Return the schema as xmlschema reads it; that takes some tenths of a second."""
    return xmlschema.XMLSchema(schema_file())


@final
class StructureCheck:
    """Compares a tree with the XSD. ``flagged`` holds what is wrong: elements, each with the name of the wrong
    attribute, or an empty text for the element itself.
    """

    def __init__(self, source: Source, core: Element, problems: Problems) -> None:
        self._source = source
        self._core = core
        self._problems = problems
        self._parents: dict[str, set[str]] = {}
        self.flagged: set[tuple[Element, str]] = set()

    def run(self) -> None:
        """Check everything inside ``core``."""
        declaration = explaining_schema().maps.elements[_CORE]
        self._learn_parents(declaration, set())
        self._element(self._core, declaration)
        if not self._problems.are_full:
            self._order(self._core, declaration)

    def _element(self, element: Element, declaration: XsdElement) -> None:
        if self._problems.are_full:
            return
        self._attributes(element, declaration)
        kind: Any = declaration.type
        if kind.has_simple_content() or kind.is_simple():
            self._simple_content(element, declaration)
            return
        self._stray_text(element)
        known = _children_of(declaration)
        self._children(element, known, kind)
        for child in element:
            if child.tag in known:
                self._element(child, known[child.tag])

    def _flag(self, element: Element, message: str, attribute: str = "", /, **details: str | None) -> None:
        self.flagged.add((element, attribute))
        self._problems.error(self._source.origin(element), message, **details)

    def _attributes(self, element: Element, declaration: Any) -> None:
        known = {name: each for name, each in declaration.attributes.items() if name is not None}
        own_names = [name for name in known if not name.startswith("{")]
        tag = local_name(element)
        for name in map(str, element.attrib):  # a value is found by looking at all attributes before it
            if self._problems.are_full:
                return
            if name in known:
                value = str(element.attrib[name])
                if not _is_valid(known[name].type, value):
                    self._flag(
                        element,
                        f"attribute {name} of {tag} has a wrong value",
                        name,
                        value=value,
                        **_allowed(known[name].type, value),
                    )
            elif not name.startswith("{") or name.startswith(_XML_ATTRIBUTE):
                hint = _AS_ELEMENT.get((tag, name))
                guess = None if hint else nearest(name, own_names)
                self._flag(
                    element,
                    f"{tag} has no attribute {name}" + ("" if hint else _newer(name, guess)),
                    allowed=hint or _listed(own_names, "no attribute at all"),
                    suggestion=guess,
                )
        for name, each in known.items():
            if each.use == "required" and name not in element.attrib:
                self._flag(element, f"{tag} needs the attribute {name}")

    def _simple_content(self, element: Element, declaration: Any) -> None:
        tag = local_name(element)
        for child in element:
            self._flag(child, f"{tag} takes a text, not the element {local_name(child)}")
        text = element.text or ""
        if text == "" and declaration.default is not None:
            return
        kind = declaration.type if declaration.type.is_simple() else declaration.type.content
        if not _is_valid(kind, text):
            self._flag(element, f"{tag} has a wrong value", value=text, **_allowed(kind, text))

    def _stray_text(self, element: Element) -> None:
        for text in (element.text, *(child.tail for child in element)):
            if text and text.strip():
                hint = '<filter string="…"/>' if local_name(element) == "filter" else "elements only"
                self._flag(
                    element,
                    (f"{local_name(element)} must not contain text outside its elements"),
                    value=text.strip(),
                    allowed=hint,
                )

    def _children(self, element: Element, known: dict[str, Any], kind: Any) -> None:
        names = [etree.QName(tag).localname for tag in known]
        firsts: dict[str, Element] = {}
        for child in element:
            if self._problems.are_full:
                return
            first = firsts.setdefault(child.tag, child)
            if child.tag not in known:
                self._unknown_child(child, element, names)
            elif first is not child and _once(known[child.tag], kind):
                where = self._source.origin(first)
                self._flag(
                    child, f"{local_name(child)} appears more than once in {local_name(element)}; the first is {where}"
                )
        for tag, declaration in known.items():
            if tag not in firsts and _required(declaration, kind):
                self._flag(element, f"{local_name(element)} needs the element {etree.QName(tag).localname}")

    def _unknown_child(self, child: Element, parent: Element, names: list[str]) -> None:
        name, namespace = local_name(child), etree.QName(child).namespace
        if namespace != CORE_NAMESPACE:
            where = f"in the namespace {namespace}" if namespace else "in no namespace"
            self._flag(child, f"element {name} is {where}", allowed=f'xmlns="{CORE_NAMESPACE}"')
            return
        suggestion = nearest(name, names)
        elsewhere = self._parents.get(name)
        message = f"{local_name(parent)} has no element {name}"
        if elsewhere and suggestion is None:
            message += f"; it belongs into {' or '.join(sorted(elsewhere)[:4])}"
        else:
            message += _newer(name, suggestion)
        self._flag(child, message, allowed=_listed(names, "no element at all"), suggestion=suggestion)

    def _learn_parents(self, declaration: Any, seen: set[int]) -> None:
        """Note for each element name which elements may contain it."""
        if id(declaration.type) in seen:
            return
        seen.add(id(declaration.type))
        for tag, child in _children_of(declaration).items():
            self._parents.setdefault(etree.QName(tag).localname, set()).add(declaration.local_name)
            self._learn_parents(child, seen)

    def _order(self, core: Element, declaration: Any) -> None:
        """Report a wrong order or choice of children, if nothing else is wrong with them."""
        flagged = {element for element, _ in self.flagged}
        wrong_parents = {each.getparent() for each in flagged} | flagged
        for error in declaration.iter_errors(core):
            element = error.elem
            if not isinstance(error, XMLSchemaChildrenValidationError) or element in wrong_parents:
                continue
            child: Any = error.invalid_child
            if child is None:
                self._flag(element, f"{local_name(element)} is incomplete", allowed=_expected(error))
            else:
                self._flag(
                    child,
                    f"{local_name(child)} is not allowed here in {local_name(element)}: wrong order, or another "
                    "element excludes it",
                    allowed=_expected(error),
                )


def _newer(name: str, guess: str | None) -> str:
    told = unless_newer(name, guess)
    return f"{told}: remove it to start without what it asks for" if told else ""


def _listed(names: list[str], nothing: str) -> str | None:
    """Return the names for a message; None if there are too many to help."""
    return (", ".join(names) or nothing) if len(names) <= _LIST_LENGTH_MAX else None


def _children_of(declaration: Any) -> dict[str, Any]:
    kind = declaration.type
    if kind.is_simple() or kind.has_simple_content():
        return {}
    return {str(child.name): child for child in kind.content.iter_elements() if child.name is not None}


def _once(declaration: Any, kind: Any) -> bool:
    """Return whether an element may appear only once: it and every group around it."""
    outer = (kind.content, *_groups_between(declaration, kind))
    return declaration.max_occurs == 1 and all(group.max_occurs == 1 for group in outer)


def _required(declaration: Any, kind: Any) -> bool:
    outer = (kind.content, *_groups_between(declaration, kind))
    return bool(declaration.min_occurs) and all(group.model != "choice" and group.min_occurs for group in outer)


def _groups_between(declaration: Any, kind: Any) -> list[Any]:
    """Return the groups inside the content of ``kind`` that hold a declaration."""

    def search(group: Any) -> list[Any] | None:
        for item in group:
            if item is declaration:
                return []
            if not isinstance(item, XsdElement) and hasattr(item, "model"):
                below = search(item)
                if below is not None:
                    return [item, *below]
        return None

    return search(kind.content) or []


def _expected(error: Any) -> str | None:
    names = [each.local_name for each in error.expected or () if getattr(each, "local_name", None)]
    return ", ".join(names) or None


def _base_name(kind: Any) -> str | None:
    """Return the name of the type in :data:`_TYPES` that a simple type is derived from."""
    base: Any = kind
    while base is not None:
        if str(base.local_name) in _TYPES:
            return str(base.local_name)
        base = base.base_type
    return None


def _is_valid(kind: Any, text: str) -> bool:
    """Ask xmlschema, but refuse ``1_000`` and digits of other scripts, which it accepts as numbers and the XSD does
    not.
    """
    if _base_name(kind) in _NUMBERS and ("_" in text or not text.isascii()):
        return False
    return bool(kind.is_valid(text))


def _allowed(kind: Any, value: str) -> dict[str, str | None]:
    """Return what a simple type allows, and the nearest of its values."""
    words = [str(word) for word in kind.enumeration or ()]
    if words:
        return {"allowed": ", ".join(words), "suggestion": nearest(value, words)}
    name = _base_name(kind)
    if name is None:
        return {"allowed": None, "suggestion": None}
    folded = value.strip().casefold()
    suggestion = _TRUTH_WORDS.get(folded, nearest(value, ("true", "false"))) if name == "boolean" else None
    return {"allowed": _TYPES[name], "suggestion": suggestion}
