"""Each event is one line, whatever a user writes into a name."""

import io
import logging

import orjson
import pytest

from evenkeel.log import log, set_up


@pytest.fixture
def lines(monkeypatch):
    """A function that sets the log up and gives back what it then writes."""
    out = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("evenkeel")
    before = root.handlers[:], root.level, ours.level

    def written(*, json: bool, verbose: bool = False):
        monkeypatch.setattr("sys.stderr", out)
        set_up(json=json, verbose=verbose)
        return lambda: out.getvalue().splitlines()

    yield written
    root.handlers[:], root.level, ours.level = before


HOSTILE = {
    "a new line": "a\nFORGED line",
    "a carriage return": "a\rFORGED",
    "a line separator": "a\u2028FORGED",
    "a form feed": "a\x0cFORGED",
    "a terminal command": "a\x1b[2JFORGED",
    "a bell": "a\x07FORGED",
    "a zero": "a\x00FORGED",
    "text that turns round": "a\u202eFORGED",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("json", [True, False], ids=["json", "words"])
def test_no_text_makes_a_second_line_or_commands_a_terminal(lines, json, text):
    written = lines(json=json)
    log("schedule rejected", schedule=text, error=ValueError(text), many=[text])
    (line,) = written()
    assert line.isprintable()


def test_json_has_an_event_and_its_fields(lines):
    written = lines(json=True)
    log("run missed", level="warning", schedule="shop/report", count=3, score=0.5, empty="")
    line = orjson.loads(written()[0])
    assert line.pop("time")
    assert line == {
        "level": "warning",
        "event": "run missed",
        "schedule": "shop/report",
        "count": 3,
        "score": 0.5,
    }


def test_words_are_for_people(lines):
    written = lines(json=False)
    log("run missed", level="warning", schedule="shop/report")
    assert written()[0].endswith("warning: run missed schedule=shop/report")


def test_a_long_text_is_cut(lines):
    written = lines(json=True)
    log("x", text="y" * 100_000)
    assert len(written()[0]) < 2000


def test_an_exception_is_one_line_with_its_name(lines):
    written = lines(json=False)
    try:
        raise ValueError("a\nb")
    except ValueError:
        logging.getLogger("evenkeel").exception("callback failed")
    (line,) = written()
    assert "error=ValueError: a b" in line


def test_debug_is_silent_unless_asked_for(lines):
    written = lines(json=False)
    log("detail", level="debug")
    assert written() == []
    written = lines(json=False, verbose=True)
    log("detail", level="debug")
    assert len(written()) == 1
