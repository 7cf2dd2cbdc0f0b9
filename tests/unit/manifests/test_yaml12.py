"""YAML is read as kubectl reads it. The table was measured with kubectl 1.36:
`kubectl label --local -f FILE x=y -o json` on an object whose spec held these scalars."""

import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.manifests.yaml12 import load_all

MEASURED: dict[str, Any] = {
    "22:00": "22:00",
    "1:30:00": "1:30:00",
    "190:20:30.15": "190:20:30.15",
    "2026-01-01": "2026-01-01",
    "2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z",
    "yes": True,
    "on": True,
    "y": True,
    "TRUE": True,
    "no": False,
    "off": False,
    "n": False,
    "tRue": "tRue",
    "~": None,
    "Null": None,
    "": None,
    "010": 8,
    "0o10": 8,
    "0777": 511,
    "08": 8,
    "0x10": 16,
    "0b11": 3,
    "-0o7": -7,
    "0x": "0x",
    "1_000": 1000,
    "+5": 5,
    "-0": 0,
    "1e3": 1000,
    "12e03": 12000,
    "1.": 1,
    ".5": 0.5,
    "-.5": -0.5,
    "1.50": 1.5,
    "123456789012345678901234567890": 1.2345678901234568e29,
    "9223372036854775808": 9.223372036854775808e18,
    "1e400": "1e400",
    "=": "=",
    ".": ".",
    "!!str 5": "5",
    "!!binary aGVsbG8=": "hello",
    '"5"': "5",
    "'yes'": "yes",
}


def one(text: str) -> Any:
    (document,) = load_all(text)
    return document


@pytest.mark.parametrize(("text", "value"), MEASURED.items(), ids=repr)
def test_a_scalar_is_what_kubectl_makes_of_it(text: str, value: Any) -> None:
    read = one(f"a: {text}\n")["a"]
    assert read == value
    assert type(read) is type(value)


def test_keys_are_strings() -> None:
    assert one("{1: a, true: b, 1.5: c, ~: d, yes: e}") == {
        "1": "a",
        "true": "e",
        "1.5": "c",
        "null": "d",
    }


def test_anchors_and_merge_keys_are_followed() -> None:
    text = "base: &b {p: 1, q: 2}\nuse:\n  <<: *b\n  q: 3\nagain: *b\n"
    assert one(text) == {
        "base": {"p": 1, "q": 2},
        "use": {"p": 1, "q": 3},
        "again": {"p": 1, "q": 2},
    }


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: .inf", id="infinity"),
        pytest.param("a: -.INF", id="minus infinity"),
        pytest.param("a: .nan", id="not a number"),
        pytest.param("a:\n\t- 1", id="a tab as indentation"),
        pytest.param("a: [1", id="an open bracket"),
        pytest.param("a: *nowhere", id="an alias of nothing"),
        pytest.param("schedule: */5 * * * *", id="a cron text without quotes"),
        pytest.param("? [1, 2]\n: 3", id="a list as a key"),
        pytest.param("a: &a [*a]", id="a list that holds itself"),
        pytest.param("a: &a {b: *a}", id="an object that holds itself"),
        pytest.param(LAUGHS, id="ten billion laughs"),
        pytest.param("[" * 200_000 + "]" * 200_000, id="nested without end"),
        pytest.param("- " * 200_000 + "a", id="nested without end, in block style"),
        pytest.param("a: b\x00c", id="a control character"),
        pytest.param("x: !!python/object/apply:os.getcwd []", id="a tag that runs code"),
    ],
)
def test_what_is_no_manifest_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        list(load_all(text))


TAGS = ("!!int ", "!!map ", "!!seq ", "!!bool ", "!!set ", "!!binary ", "!!float ", "!!omap ")
TOKENS = st.sampled_from(
    [*"ab:-[]{}&*!#|>'\"\n 0123.eE+_~<?,%@`", *TAGS, "<<: ", "*a ", "&a ", "\n- ", "\n  "]
)


@given(st.lists(TOKENS, max_size=30).map("".join))
@settings(max_examples=1500, deadline=None)
def test_any_text_is_read_or_an_error_of_yaml(text: str) -> None:
    with contextlib.suppress(yaml.YAMLError):
        list(load_all(text))
