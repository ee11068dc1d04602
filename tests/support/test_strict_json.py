"""JSON that Python parses and then stumbles over."""

import json

import pytest

from episodic_curiosity.support.strict_json import parse_json


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        '{"a": [-Infinity]}',
        "1" + "0" * 400,
        "[-1e999]",
        "1" + "0" * 5000,  # more digits than Python converts
        nested(60),
        nested(900),
        nested(100_000),
        '{"a": ' * 70 + "1" + "}" * 70,
        "{",
        b"\xff",
    ],
)
def test_refused(text):
    with pytest.raises(ValueError, match=r".+") as refusal:
        parse_json(text)
    assert len(str(refusal.value)) < 200


def test_accepted():
    value = {
        "a": [1, -2.5e300, None, {"b": "NaN"}],
        "c": 2**63 - 1,
        "d": json.loads(nested(40)),
    }
    assert parse_json(json.dumps(value)) == value
