"""Prometheus' own evaluation of the rules in docs/alerts.yaml, on what an operator answered.

    story = Story(until_s=3600)
    story.add(0, "/metrics, as scraped")
    story.expect(600, {"alertname": "EvenkeelRunsMissed", "reason": "superseded"})
    story.judge(tmp_path)

A story lays scrapes out on a time line of Prometheus, one sample in 15 seconds: at each of these
instants every series has the value of the newest scrape before it. The values are the operator's
own; only when they are seen is the story's. `gone` says that a process answers no more. promtool
evaluates the rules every 15 seconds of that time.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.cluster.harness import promtool as harness

Json = dict[str, Any]
RULES = Path(__file__).parents[1] / "docs" / "alerts.yaml"
STEP_S = 15

Series = dict[str, float]
"""Values by name and labels, as PromQL writes a series."""


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def read(text: str, *, instance: str) -> Series:
    """The samples that the rules ask for."""
    asked = set(re.findall(r"evenkeel_\w+", " ".join(rule["expr"] for rule in rules())))
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in asked:
                labels = {**sample.labels, "instance": instance}
                shown = ", ".join(f"{name}={json.dumps(label)}" for name, label in labels.items())
                found[f"{sample.name}{{{shown}}}"] = float(sample.value)
    return found


Labels = Mapping[str, str]

_ALERTS = "max by (alertname, reason, cause, namespace, schedule) (%s)"


@dataclass
class Story:
    """What Prometheus would have stored, and what it should say of it."""

    until_s: int
    growing: tuple[str, ...] = ()
    """Families that say how long something lasts: after the last scrape they go on by the story's
    time, as they would."""
    _scrapes: list[tuple[float, str, Series]] = field(default_factory=list)
    _expected: list[Json] = field(default_factory=list)

    def add(self, at_s: float, *texts: str, instance: str = "operator") -> None:
        """A scrape."""
        found: Series = {}
        for text in texts:
            found |= read(text, instance=instance)
        assert found, "nothing that a rule asks for"
        self._scrapes.append((at_s, instance, found))

    def gone(self, at_s: float, *, instance: str = "operator") -> None:
        """From then on this process answers no more."""
        self._scrapes.append((at_s, instance, {}))

    def expect(self, at_s: float, *firing: Labels) -> None:
        """Exactly these alerts fire then, each by its name and its own labels."""
        self._ask(_ALERTS % 'ALERTS{alertstate="firing"}', at_s, firing)

    def expect_silence(self, states: str = "firing|pending") -> None:
        """No alert fires at any time; nor is one pending, unless `states` leaves that out."""
        chosen = f'ALERTS{{alertstate=~"{states}"}}[{self.until_s}s]'
        self._ask(_ALERTS % f"max_over_time({chosen})", self.until_s, ())

    def judge(self, directory: Path) -> None:
        """Have promtool evaluate the rules."""
        test = {
            "rule_files": [str(RULES)],
            "evaluation_interval": f"{STEP_S}s",
            "tests": [
                {
                    "interval": f"{STEP_S}s",
                    "input_series": list(self._laid_out()),
                    "promql_expr_test": self._expected,
                }
            ],
        }
        file = directory / "story.yaml"
        file.write_text(json.dumps(test))  # which is YAML
        done = promtool("test", "rules", str(file))
        assert done.returncode == 0, done.stdout + done.stderr

    def _ask(self, expr: str, at_s: float, firing: Iterable[Labels]) -> None:
        samples = [
            {"labels": "{" + ", ".join(f'{k}="{v}"' for k, v in labels.items()) + "}", "value": 1}
            for labels in firing
        ]
        asked = {"expr": expr, "eval_time": f"{at_s:.0f}s", "exp_samples": samples}
        self._expected.append(asked)

    def _laid_out(self) -> Iterator[Json]:
        scrapes = sorted(self._scrapes, key=lambda scrape: scrape[0])
        instances = {instance for _, instance, _ in scrapes}
        for instance in sorted(instances):
            of_one = [(at_s, series) for at_s, name, series in scrapes if name == instance]
            for name in sorted({name for _, series in of_one for name in series}):
                values = " ".join(self._values(name, of_one))
                yield {"series": name, "values": values}

    def _values(self, name: str, scrapes: list[tuple[float, Series]]) -> Iterator[str]:
        for now_s in range(0, self.until_s + STEP_S, STEP_S):
            before = [scrape for scrape in scrapes if scrape[0] <= now_s]
            value = before[-1][1].get(name) if before else None
            if value is None:
                yield "_"  # Prometheus sees it missing; in real life it would mark it as stale
                continue
            if name.startswith(self.growing) and before[-1] is scrapes[-1]:
                value += now_s - before[-1][0]
            yield repr(value)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [harness.program(), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
