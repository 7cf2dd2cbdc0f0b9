"""`evenkeel lint`: prints every mistake of manifests, for people and for continuous integration.

The mistakes are those of `plan`, found by the same code. Beside them stand notes, which never fail
the command. What only a cluster knows (quotas, admission webhooks, whether an image exists) is not
found here.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import click

from evenkeel.balance import LoadMap, place
from evenkeel.cli import show
from evenkeel.cli.given import (
    GivenSet,
    check_years,
    files_option,
    from_option,
    member_of,
    needs_a_phase,
    plural,
    recursive_option,
    say_some,
)
from evenkeel.cli.lint_requests import judge_requests
from evenkeel.cli.notes import notes_of
from evenkeel.cli.second_opinion import SecondOpinion
from evenkeel.errors import BadField
from evenkeel.manifests import manifest
from evenkeel.manifests.cronjob import is_cronjob
from evenkeel.manifests.findings import Mistake, Problem
from evenkeel.manifests.manifest import Manifests, problem_of
from evenkeel.model import Instant
from evenkeel.settings import Settings

Level = Literal["mistake", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer. `line` and `column` count from 1; 0: they are not known."""

    level: Level
    file: str
    line: int
    column: int
    object: str
    field: str
    message: str


@click.command()
@files_option
@recursive_option
@from_option
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "json", "github"]),
    default="table",
    show_default=True,
    help="Lines for people and editors, JSON lines for programs, or annotations for GitHub.",
)
def lint(*, files: tuple[str, ...], recursive: bool, start: Instant, form: str) -> None:
    """Find every mistake of manifests. No cluster is needed.

    Reads ScheduledJobs, CronJobs and RunRequests and prints one line for each mistake: file, line,
    column, object, field, and what to write instead. Objects of other kinds are left out, and so is
    YAML in a DIR that is no Kubernetes object, such as values.yaml. For example:

    \b
      evenkeel lint -f deploy/ -R
      helm template my-chart | evenkeel lint -f -
      kubectl kustomize overlays/prod | evenkeel lint -f -
      evenkeel lint -f deploy/ -o github        (in a GitHub workflow)

    A mistake is what the API server or the operator would refuse: misspelt and missing fields,
    wrong types, texts that are no cron, days that never come, Job templates that Kubernetes would
    not take. Of a CronJob it is also what CronJob's own API refuses. Of a RunRequest it is also
    what its schedule does not allow, if the same files hold the schedule.

    A line that says "note" is no mistake: croniter, which many tools use, reads a cron text
    otherwise, something changes once a CronJob is a ScheduledJob, or whoever may create RunRequests
    chooses a part of a command. --from is the time from which the notes look ahead, and at which
    the range of a RunRequest must be over.

    Exit codes: 0 no mistake, 1 mistakes, 2 wrong usage.
    """
    with show.quiet_ending():
        with show.waiting("reading manifests"):
            found = manifest.load(
                files,
                recursive=recursive,
                stdin=show.standard_input,
                created=start - 1,
                keep_objects=True,
            )
            requests = judge_requests(found, start)
            problems = [*found.problems, *_unplaceable(found, start), *requests.problems]
            notes = [*_notes(found, start), *requests.notes]
            findings = [
                *(_finding("mistake", problem) for problem in problems),
                *(_finding("note", note) for note in notes),
            ]
        for finding in sorted(findings, key=lambda each: (each.file, each.line, each.column)):
            show.write(f"{LINES[form](finding)}\n")
        sys.stdout.flush()  # in a log that holds both streams, the summary stands last
        say_some("skipped, no Kubernetes object", [str(note) for note in found.skipped])
        right = len(found.schedules), requests.right
        show.say(summary(len(problems), len(notes), *right))
    if problems:
        raise SystemExit(1)


def _finding(level: Level, at: Problem) -> Finding:
    return Finding(level, at.source, at.line, at.column, at.name, at.field, at.sentence)


def _unplaceable(found: Manifests, now: Instant) -> Iterator[Problem]:
    """Intervals for which no phase is possible: a window that the zone's clock never shows."""
    given = GivenSet(tuple(found.schedules), bad=0)
    for schedule in found.schedules:
        if not needs_a_phase(schedule) or schedule.placement.window is None:
            continue
        try:
            check_years(schedule, now)
            lead_s = Settings().pre_schedule_s
            place(LoadMap(now), member_of(given, schedule), now, pre_schedule_s=lead_s)
        except BadField as wrong:
            path = ("spec", *wrong.field.split("."))
            yield problem_of(found.found[schedule.key], Mistake(path, wrong.sentence))


def _notes(found: Manifests, start: Instant) -> Iterator[Problem]:
    opinion = SecondOpinion(start)
    for schedule in found.schedules:
        at = found.found[schedule.key]
        was_cronjob = is_cronjob(at.object)
        for note in notes_of(schedule, was_cronjob=was_cronjob, opinion=opinion, start=start):
            yield problem_of(at, Mistake(note.path, note.sentence))


def summary(mistakes: int, notes: int, schedules: int, requests: int = 0) -> str:
    """The last line, on standard error. `schedules` and `requests` are those without a mistake."""
    if not (mistakes or schedules or requests):
        return "found no ScheduledJob, no CronJob and no RunRequest"
    wrong = f"{mistakes or 'no'} {plural('mistake', mistakes or 2)}"
    noted = f", {notes} {plural('note', notes)}" if notes else ""
    right = f"{schedules} {plural('schedule', schedules)}"
    asked = f" and {requests} {plural('request', requests)}" if requests else ""
    return f"{wrong}{noted}; {right}{asked} without a mistake"


# --- lines ------------------------------------------------------------------------------------


def table_line(finding: Finding) -> str:
    """`file:line:column: object: field: message`, which editors and terminals can jump to."""
    where = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part)
    level = "note" if finding.level == "note" else ""
    parts = (where, level, finding.object, finding.field, finding.message)
    return ": ".join(_printable(part) for part in parts if part)


def json_line(finding: Finding) -> str:
    """One JSON object."""
    return json.dumps(asdict(finding))


def github_line(finding: Finding) -> str:
    """A workflow command, which GitHub shows beside the line in a pull request."""
    command = "error" if finding.level == "mistake" else "notice"
    properties = {
        "file": "" if finding.file == "stdin" else finding.file,
        "line": finding.line,
        "col": finding.column,
        "title": finding.object,
    }
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    message = ": ".join(part for part in (finding.field, finding.message) if part)
    return f"::{command} {shown}::{_data(message)}"


def _data(text: str) -> str:
    """Escaped as GitHub's own toolkit does: a line feed would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _printable(text: str) -> str:
    """One line: a name from a file could hold line feeds, and the codes of a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)


LINES: dict[str, Callable[[Finding], str]] = {
    "table": table_line,
    "json": json_line,
    "github": github_line,
}
