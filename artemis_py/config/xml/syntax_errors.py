"""Our words for libxml2's errors about XML that is not well-formed."""

from __future__ import annotations

import re
from typing import Final

_MISMATCH: Final = re.compile(r"Opening and ending tag mismatch: (\S+) line (\d+) and (\S+)")
_NAME: Final = re.compile(r"(?:Entity|Attribute|Namespace prefix) '?([^\s']+)'?")

_WORDS: Final = {
    "ERR_ATTRIBUTE_NOT_FINISHED": "the value of an attribute has no closing quote",
    "ERR_ATTRIBUTE_NOT_STARTED": "the value of an attribute must be in quotes",
    "ERR_ATTRIBUTE_REDEFINED": "the attribute {name} appears twice in one element",
    "ERR_ATTRIBUTE_WITHOUT_VALUE": "an attribute has no value",
    "ERR_CDATA_NOT_FINISHED": "a <![CDATA[ has no ]]>",
    "ERR_COMMENT_NOT_FINISHED": "a comment has no -->",
    "ERR_DOCUMENT_EMPTY": "it has no element",
    "ERR_DOCUMENT_END": "there is content after the end of the root element",
    "ERR_ENTITYREF_SEMICOL_MISSING": "an '&' without ';' (write &amp; for the character itself)",
    "ERR_EQUAL_REQUIRED": "a '=' is missing between an attribute and its value",
    "ERR_GT_REQUIRED": "a '>' is missing at the end of a tag",
    "ERR_HYPHEN_IN_COMMENT": "'--' is not allowed inside a comment",
    "ERR_INVALID_CHAR": "a character that XML does not allow",
    "ERR_INVALID_CHARREF": "a &#…; for a character that XML does not allow",
    "ERR_INVALID_ENCODING": "these bytes are not valid in the file's encoding",
    "ERR_LT_IN_ATTRIBUTE": "a '<' in the value of an attribute (write &lt;)",
    "ERR_LTSLASH_REQUIRED": "the end tag of an element is missing",
    "ERR_NAME_REQUIRED": "a name is missing after '<' or '&' (write &lt; or &amp; for the characters themselves)",
    "ERR_NAME_TOO_LONG": "a name is too long",
    "ERR_RESOURCE_LIMIT": (
        "elements are nested too deeply, or a text or a name is too long: at most 256 levels, 10,000,000 "
        "characters in a text or value, 50,000 in a name"
    ),
    "ERR_SPACE_REQUIRED": "a space is missing between two attributes",
    "ERR_TAG_NOT_FINISHED": "the file ends before its last element does",
    "ERR_UNDECLARED_ENTITY": "&{name}; is undefined: only &amp; &lt; &gt; &quot; and &apos; are known",
    "ERR_UNKNOWN_VERSION": "the XML declaration names a version that is not 1.0",
    "ERR_VERSION_MISSING": 'the XML declaration has no version="1.0"',
    "ERR_XMLDECL_NOT_FINISHED": "the XML declaration has no ?>",
    "ERR_MISPLACED_CDATA_END": "']]>' is not allowed in text (write ]]&gt;)",
    "ERR_PI_NOT_FINISHED": "a <? has no ?>",
    "ERR_RESERVED_XML_NAME": "<?xml …?> is allowed only at the very beginning",
    "ERR_ENCODING_NAME": "the XML declaration names an unknown encoding",
    "ERR_INVALID_DEC_CHARREF": "a &#…; that is not a number",
    "ERR_INVALID_HEX_CHARREF": "a &#x…; that is not a hexadecimal number",
    "ERR_PI_NOT_STARTED": "a name is missing after '<?'",
    "ERR_STANDALONE_VALUE": "standalone in the XML declaration is neither yes nor no",
    "ERR_STRING_NOT_CLOSED": "a text in the XML declaration has no closing quote",
    "NS_ERR_ATTRIBUTE_REDEFINED": "the attribute {name} appears twice in one element",
    "NS_ERR_QNAME": "a name with a colon in the wrong place",
    "NS_ERR_UNDEFINED_NAMESPACE": "the prefix {name} has no namespace (xmlns:{name}=…)",
    "NS_ERR_XML_NAMESPACE": "a prefix has an empty namespace, or one that XML keeps for itself",
    "WAR_NS_URI": "a namespace is not a URI",
    "WAR_UNDECLARED_ENTITY": "&{name}; is undefined: only &amp; &lt; &gt; &quot; and &apos; are known",
}


def in_our_words(kind: str, message: str) -> str:
    """Return the meaning of an entry of libxml2's log; a kind without words of ours is given by its name."""
    mismatch = _MISMATCH.match(message)
    if mismatch is not None and mismatch[3].startswith("unpars"):  # the parser's own word for what it cannot read
        return f"<{mismatch[1]}> of line {mismatch[2]} is closed by something that is no end tag"
    if mismatch is not None:
        return f"<{mismatch[1]}> of line {mismatch[2]} is closed by </{mismatch[3]}>"
    words = _WORDS.get(kind)
    if words is None:
        return f"something that XML does not allow ({kind})"
    name = _NAME.search(message)
    return words.replace("{name}", name[1] if name else "a name")
