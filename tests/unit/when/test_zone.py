"""Zones are read from the pinned tzdata package, correctly, and an unknown name is refused."""

import importlib.metadata
import importlib.resources

import pytest
from tests.unit.when.oracle import clock_changes, instant, offset_s

from evenkeel.errors import BadField
from evenkeel.model import Hourly, Timing
from evenkeel.when import compile_timing, zone_data_version
from evenkeel.when.zone import MAX_INSTANT, load_zone, zone_by_number

END_2099 = instant("2100-01-01T00:00Z")

UNKNOWN = {
    "a made-up name": ("Mars/Olympus", "IANA name"),
    "another case": ("europe/berlin", "write Europe/Berlin"),
    "nothing": ("", "IANA name"),
    "a path": ("../../etc/localtime", "IANA name"),
    "an absolute path": ("/etc/localtime", "IANA name"),
    "the machine's own": ("Local", "IANA name"),
    "an offset": ("+02:00", "IANA name"),
    "5,000 characters": ("A" * 5000, "IANA name"),
    "a NUL byte": ("UTC\0", "IANA name"),
}


@pytest.mark.parametrize(("name", "remedy"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_zone_is_refused_and_never_utc(name, remedy):
    with pytest.raises(BadField) as raised:
        compile_timing(Timing(Hourly(0), zone=name), seed="")
    assert raised.value.field == "timeZone"
    assert remedy in raised.value.sentence
    assert len(raised.value.sentence) < 200


def test_zones_are_read_from_the_package_whatever_files_the_machine_has(monkeypatch):
    monkeypatch.setenv("PYTHONTZPATH", "/nowhere")
    assert load_zone("Asia/Kathmandu").offset_at(0) == 5 * 3600 + 1800
    assert load_zone("Asia/Kathmandu").offset_at(instant("2026-01-01T00:00Z")) == 20_700


def test_the_version_of_the_zone_data_is_the_wheels():
    assert zone_data_version() == importlib.metadata.version("tzdata")


def test_a_zone_is_read_once_and_found_by_its_number():
    zone = load_zone("Europe/Paris")
    assert load_zone("Europe/Paris") is zone
    assert zone_by_number(zone.number) is zone


def _wheel_names() -> list[str]:
    text = (importlib.resources.files("tzdata") / "zones").read_text("ascii")
    return text.split()


@pytest.mark.parametrize("first", range(8))
def test_every_zone_of_the_wheel_is_read_as_zoneinfo_reads_it(first):
    """Both sides of every change since 1970, up to 2099 by the rule of the far future."""
    for name in _wheel_names()[first::8]:
        zone = load_zone(name)
        instants, offsets = zone.spans(END_2099)
        for place, change in enumerate(instants):
            if 0 <= change < END_2099 and (change < 2**31 or place % 5 == 0):
                assert offset_s(name, change - 1) == offsets[place], name
                assert offset_s(name, change) == offsets[place + 1], name
        for t in range(0, END_2099, 100 * 86_400 + 7777):
            assert zone.offset_at(t) == offset_s(name, t), name


@pytest.mark.parametrize("name", ["Africa/Casablanca", "America/Grand_Turk", "Europe/Dublin"])
def test_no_change_of_a_zone_is_overlooked(name):
    begin, end = instant("2010-01-01T00:00Z"), instant("2040-01-01T00:00Z")
    instants, _ = load_zone(name).spans(end)
    assert [t for t in instants if begin <= t < end] == clock_changes(name, begin, end)


def test_changes_lie_farther_apart_than_they_move_the_clock():
    """`dst.parts` relies on it: no two changes affect the same local time."""
    for name in _wheel_names():
        instants, offsets = load_zone(name).spans(END_2099)
        for place in range(1, len(instants)):
            moved_s = abs(offsets[place + 1] - offsets[place])
            moved_before_s = abs(offsets[place] - offsets[place - 1])
            assert instants[place] - instants[place - 1] > moved_s + moved_before_s, name


def test_the_rule_of_the_far_future_reaches_the_year_9999():
    berlin = load_zone("Europe/Berlin")
    instants, _ = berlin.spans(MAX_INSTANT)
    assert len(instants) > 15_000
    assert berlin.offset_at(instant("9999-07-01T00:00Z")) == 7200
    assert berlin.offset_at(instant("9999-12-31T23:00Z")) == 3600
