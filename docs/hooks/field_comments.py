"""Shows the comments of fields in the reference: an option is explained once, in code.

`curiosity train --help` reads the same comments.
"""

import re
from typing import Any

import griffe

COMMENT = re.compile(r"(?<![\"'])#\s*(?!noqa)(.+)$")


class FieldComments(griffe.Extension):
    """Makes the comment behind or above a field of a class its docstring."""

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Griffe calls this for every attribute of the package."""
        if attr.docstring is not None or attr.lineno is None or not is_field(attr):
            return
        if comment := find_comment(attr.lines_collection[attr.filepath], attr):
            sentence = comment[0].upper() + comment[1:]
            attr.docstring = griffe.Docstring(sentence, parent=attr)


def is_field(attr: griffe.Attribute) -> bool:
    """True in dataclasses and NamedTuples; buffers of modules are no arguments."""
    if not isinstance(attr.parent, griffe.Class) or attr.annotation is None:
        return False
    kinds = [*attr.parent.bases, *(each.value for each in attr.parent.decorators)]
    return any(name in str(kind) for kind in kinds for name in ("dataclass", "NamedTuple"))


def find_comment(lines: list[str], attr: griffe.Attribute) -> str:
    """The comment behind the field, or the comment lines above it."""
    assert attr.lineno is not None
    first = attr.lineno - 1
    for line in lines[first : attr.endlineno]:
        if behind := COMMENT.search(line):
            return behind[1].strip()
    above: list[str] = []
    while first and lines[first - 1].strip().startswith("#"):
        first -= 1
        above.insert(0, lines[first].strip("# \n"))
    return " ".join(above)
