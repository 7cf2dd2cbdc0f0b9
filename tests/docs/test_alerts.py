"""The page of the alerts, the file of their rules, and the metrics that the rules ask for."""

from __future__ import annotations

import re

from tests.docs.blocks import block
from tests.promtool import RULES, promtool, rules
from tests.unit.test_words import series_of_table, words_of_table


def test_the_page_shows_the_file_word_for_word() -> None:
    assert block("alerts").text == RULES.read_text(encoding="utf-8")


def test_the_page_explains_every_alert() -> None:
    names = [rule["alert"] for rule in rules()]
    page = (RULES.parent / "alerts.md").read_text(encoding="utf-8")
    assert words_of_table("alerts.md", "Alerts") == names
    assert re.findall(r"^## (Evenkeel\w+)$", page, re.MULTILINE) == names


def test_the_rules_ask_only_for_series_that_there_are() -> None:
    tables = ("Metrics", "Metrics by schedule")
    told = {n.partition("{")[0] for each in tables for n in series_of_table("metrics.md", each)}
    asked = set(re.findall(r"evenkeel_\w+", " ".join(rule["expr"] for rule in rules())))
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked} <= told


def test_promtool_takes_the_rules() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout
