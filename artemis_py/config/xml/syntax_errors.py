"""What libxml2 says of XML that is not well-formed, in our words."""

from __future__ import annotations

import re
from typing import Final

_MISMATCH: Final = re.compile(r"Opening and ending tag mismatch: (\S+) line (\d+) and (\S+)")
_NAME: Final = re.compile(r"(?:Entity|Attribute|Namespace prefix) '?([^\s']+)'?")

_WORDS: Final = {
    "ERR_ATTRIBUTE_NOT_FINISHED": "the value of an attribute has no closing quote",
    "ERR_ATTRIBUTE_NOT_STARTED": "the value of an attribute must stand in quotes",
    "ERR_ATTRIBUTE_REDEFINED": "the attribute {name} stands twice in one element",
    "ERR_ATTRIBUTE_WITHOUT_VALUE": "an attribute has no value",
    "ERR_CDATA_NOT_FINISHED": "a <![CDATA[ has no ]]>",
    "ERR_COMMENT_NOT_FINISHED": "a comment has no -->",
    "ERR_DOCUMENT_EMPTY": "there is no element in it",
    "ERR_DOCUMENT_END": "something stands behind the end of the outermost element",
    "ERR_ENTITYREF_SEMICOL_MISSING": "an '&' without ';' (write &amp; for the character itself)",
    "ERR_EQUAL_REQUIRED": "a '=' is missing between an attribute and its value",
    "ERR_GT_REQUIRED": "a '>' is missing at the end of a tag",
    "ERR_HYPHEN_IN_COMMENT": "'--' may not stand inside a comment",
    "ERR_INVALID_CHAR": "a character that XML does not allow",
    "ERR_INVALID_CHARREF": "a &#…; for a character that XML does not allow",
    "ERR_INVALID_ENCODING": "these bytes are no text in the encoding of the file",
    "ERR_LT_IN_ATTRIBUTE": "a '<' in the value of an attribute (write &lt;)",
    "ERR_LTSLASH_REQUIRED": "the end tag of an element is missing",
    "ERR_NAME_REQUIRED": "a name is missing behind '<' or '&' (write &lt; or &amp; for the characters themselves)",
    "ERR_NAME_TOO_LONG": "a name is too long",
    "ERR_RESOURCE_LIMIT": "elements stand inside each other too deep, or a text or a name is too long: at most 256 "
    "elements deep, 10,000,000 characters in a text or value, 50,000 in a name",
    "ERR_SPACE_REQUIRED": "a blank is missing between two attributes",
    "ERR_TAG_NOT_FINISHED": "the file ends before its last element does",
    "ERR_UNDECLARED_ENTITY": "&{name}; means nothing: only &amp; &lt; &gt; &quot; and &apos; do",
    "ERR_UNKNOWN_VERSION": "the XML declaration names a version that is not 1.0",
    "ERR_VERSION_MISSING": 'the XML declaration has no version="1.0"',
    "ERR_XMLDECL_NOT_FINISHED": "the XML declaration has no ?>",
    "ERR_MISPLACED_CDATA_END": "']]>' may not stand in a text (write ]]&gt;)",
    "ERR_PI_NOT_FINISHED": "a <? has no ?>",
    "ERR_RESERVED_XML_NAME": "<?xml …?> may stand at the very beginning only",
    "ERR_ENCODING_NAME": "the XML declaration names no encoding that there is",
    "ERR_INVALID_DEC_CHARREF": "a &#…; that is no number",
    "ERR_INVALID_HEX_CHARREF": "a &#x…; that is no hexadecimal number",
    "ERR_PI_NOT_STARTED": "a name is missing behind '<?'",
    "ERR_STANDALONE_VALUE": "standalone in the XML declaration is neither yes nor no",
    "ERR_STRING_NOT_CLOSED": "a text in the XML declaration has no closing quote",
    "NS_ERR_ATTRIBUTE_REDEFINED": "the attribute {name} stands twice in one element",
    "NS_ERR_QNAME": "a name with a colon in a wrong place",
    "NS_ERR_UNDEFINED_NAMESPACE": "the prefix {name} has no namespace (xmlns:{name}=…)",
    "NS_ERR_XML_NAMESPACE": "a prefix has an empty namespace, or one that XML keeps for itself",
    "WAR_NS_URI": "a namespace is no URI",
    "WAR_UNDECLARED_ENTITY": "&{name}; means nothing: only &amp; &lt; &gt; &quot; and &apos; do",
}


def in_our_words(kind: str, message: str) -> str:
    """Return what an entry of libxml2's log means; a kind without words of ours is given by its
    name alone."""
    mismatch = _MISMATCH.match(message)
    if mismatch is not None:
        return f"<{mismatch[1]}> of line {mismatch[2]} is closed by </{mismatch[3]}>"
    words = _WORDS.get(kind)
    if words is None:
        return f"something that XML does not allow ({kind})"
    name = _NAME.search(message)
    return words.replace("{name}", name[1] if name else "a name")
