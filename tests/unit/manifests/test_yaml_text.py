"""Objects written as YAML are read as the same objects, by kubectl's rules."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.manifests import yaml12
from evenkeel.manifests.yaml_text import document

TRICKY = (
    *("y", "n", "Yes", "off", "~", "null", "NULL", "", " ", "1e3", "0o17", "010", "0x1f", "1_000"),
    *("22:00", "1:30:00", "2026-01-31", "2026-01-31T06:00:00Z", ".inf", ".5", "+1", "-", "- a"),
    *("a: b", "a:", ":a", "a #b", "#", "[1", "{a", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a"),
    *(
        "'",
        '"',
        "\\",
        "<<",
        "=",
        "\t",
        "a\n",
        "\na",
        "a\n\n  b\n",
        "  a\nb",
        "a \nb",
        "\u0085",
        "\n\u0085",
        "a\n\u2028b",
        "a\r\nb",
        "ü",
    ),
    *("a" * 300, "word " * 60, "---", "--- a", "...", "a\n---\nb", "\x07", "\ufeff", "NaN", "Inf"),
)


@pytest.mark.parametrize("text", TRICKY)
def test_a_string_stays_a_string(text: str) -> None:
    value = {"spec": {"key": text, "list": [text], f"k{text}": 1}}
    written = document(value)
    assert list(yaml12.load_all(written)) == [value]
    assert list(yaml.safe_load_all(written)) == [value]


plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | plain | st.sampled_from(TRICKY)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3)
)


@given(st.dictionaries(plain, trees, max_size=4))
def test_every_object_is_read_back(value: dict[str, Any]) -> None:
    assert list(yaml12.load_all(document(value))) == [value]


def test_plain_words_stay_plain_and_scripts_stay_readable() -> None:
    value = {"kind": "ScheduledJob", "image": "busybox:1.35", "args": ["set -e\necho a\n"]}
    assert document(value) == (
        "kind: ScheduledJob\nimage: busybox:1.35\nargs:\n- |\n  set -e\n  echo a\n"
    )
