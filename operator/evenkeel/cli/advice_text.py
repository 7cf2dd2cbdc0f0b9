"""What `evenkeel advise` prints: the advice for people, changed manifests, and a kustomize patch.

Only `advise` calls these functions.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenkeel.balance.convert import Reason
from evenkeel.cli import show
from evenkeel.cli.given import GivenSet, plural, some
from evenkeel.manifests.changed import Rhythm, changed, patch, window_text
from evenkeel.manifests.cronjob import is_cronjob
from evenkeel.manifests.yaml_text import document
from evenkeel.model import Instant, Weigh

if TYPE_CHECKING:
    from evenkeel.balance import Distribution
    from evenkeel.cli.advise import Advice, Left, Step

PATTERNS_NAMED = 4
TIMES = "\N{MULTIPLICATION SIGN}"
NAMES_SHOWN = 3

HAND_OVER = (
    'kubectl patch cronjob NAME -n NAMESPACE -p \'{"spec":{"suspend":true}}\'',
    "kubectl apply -f changed.yaml",
    "kubectl wait --for=condition=Ready sj/NAME -n NAMESPACE",
    "kubectl delete cronjob NAME -n NAMESPACE --cascade=orphan",
)
"""The commands of docs/cronjob.md."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command was called with, so that the next ones say the same."""

    files: Sequence[str]
    recursive: bool
    start: Instant
    weigh: Weigh
    daily: bool
    steps: int | None
    """None: as many as are shown by default."""

    @property
    def options(self) -> list[str]:
        """Those that the figures depend on, for any of the commands."""
        weigh = [] if self.weigh == "Runs" else [f"--weigh {self.weigh}"]
        return [f"--from {show.stamp(self.start)}", *weigh]

    @property
    def command(self) -> list[str]:
        """The same call, but for its output, in parts between which a line may end."""
        first = "... | evenkeel advise" if "-" in self.files else "evenkeel advise"
        options = [f"-f {shlex.quote(file)}" for file in self.files]
        options += ["-R"] * self.recursive + self.options
        if self.daily:
            options.append("--daily")
        if self.steps is not None:
            options.append(f"--steps {self.steps}")
        return [first, *options]


@dataclass(frozen=True, slots=True)
class Written:
    """A schedule that is written with another rhythm."""

    key: str
    rhythm: Rhythm


# --- manifests and patch ----------------------------------------------------------------------


def print_manifests(given: GivenSet, changes: Sequence[Written]) -> None:
    """The changed ScheduledJobs, complete. A comment says how a CronJob is handed over."""
    if not changes:
        show.say("nothing to change: no step wins anything")
        return
    handed_over = [each.key for each in changes if is_cronjob(given.objects[each.key])]
    comment = ""
    if handed_over:
        lines = [
            f"{_how_many(len(handed_over), len(changes))} CronJobs now. Hand them over between two "
            "due times, in this order (docs/cronjob.md):",
            *(f"  {command}" for command in HAND_OVER),
            "Do not leave the CronJob and the ScheduledJob both on.",
        ]
        comment = "".join(
            f"# {part}\n"
            for line in lines
            for part in (textwrap.wrap(line, 96) if not line.startswith(" ") else [line])
        )
    documents = [document(changed(given.objects[each.key], each.rhythm)) for each in changes]
    show.write(comment + "---\n".join(documents))


def print_patch(given: GivenSet, changes: Sequence[Written]) -> None:
    """A component for kustomize with one patch for each ScheduledJob."""
    cron_jobs = [each.key for each in changes if is_cronjob(given.objects[each.key])]
    patched = [each for each in changes if not is_cronjob(given.objects[each.key])]
    if cron_jobs:
        show.say(
            "not in the patch, since a patch cannot make a CronJob a ScheduledJob (take -o "
            f"manifests): {some(cron_jobs)}"
        )
    if not patched:
        why = "all are CronJobs" if cron_jobs else "no step wins anything"
        show.say(f"nothing to patch: {why}")
        return
    component: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [
            {"patch": document(patch(given.objects[each.key], each.rhythm))} for each in patched
        ],
    }
    comment = (
        "# Save this as kustomization.yaml in a directory of its own, such as even/, and add\n"
        "# `components: [even]` to the kustomization that holds the ScheduledJobs. A patch finds\n"
        "# its ScheduledJob only if both name the same namespace, or neither names one.\n"
    )
    show.write(comment + document(component))


# --- for people -------------------------------------------------------------------------------


def print_advice(given: GivenSet, found: Advice, asked: Asked) -> None:
    """The steps, what is left alone and why, and the next commands."""
    if not found.now.total_jobs:
        show.write("There is no schedule to advise on.\n")
        return
    lines = [*_wrapped(_beginning(found)), ""]
    before = found.now
    for number, step in enumerate(found.steps, start=1):
        lines += _step(step, before, number)
        before = step.then
    if found.steps:
        lines += ["", *_wrapped(_together(found, before))]
    else:
        lines += _wrapped(_nothing(found))
    if found.left:
        lines += ["", show.title("Left alone:")]
    for left in found.left:
        lines += _left(left)
    if found.steps:
        lines += ["", show.title("What to do next:"), *_next(given, found, asked)]
    show.write("\n".join([*lines, ""]))


def _beginning(found: Advice) -> str:
    now = found.now
    runs = sum(hour.run_count for hour in now.hourly)
    if now.total_jobs == 1:
        of_them = "with fixed times" if found.fixed else "without fixed times"
        schedules = f"1 schedule, {of_them}"
    else:
        fixed = "all" if found.fixed == now.total_jobs else f"{found.fixed:,}"
        schedules = f"{now.total_jobs:,} schedules, {fixed} of them with fixed times"
    text = f"{schedules}: {runs:,} {plural('run', runs)} in the 24 h from {show.stamp(now.start)}."
    if not runs:
        return text
    minute = now.busiest_minute
    start = "run starts" if minute.starts == 1 else "runs start"
    return (
        f"{text} In the busiest minute, {show.stamp(minute.at)[11:16]} UTC, {minute.starts:,} "
        f"{start}. The peak is a load of {now.peak:,} in 15 minutes."
    )


def _step(step: Step, before: Distribution, number: int) -> Iterator[str]:
    """Such as: 30 of `0 */6 * * *` could become `interval: {every: 6h}`: busiest minute 179 -> 20,
    peak 260 -> 190."""
    times = TIMES if show.has_blocks(show.console()) else "x"
    last = len(step.changes) - 1
    for place, change in enumerate(step.changes):
        text = (
            f"{len(change.schedules):,} {times} `{change.pattern}` could become "
            f"`{_rhythm(change.rhythm)}`{':' if place == last else ' and'}"
        )
        yield from _wrapped(text, f"{number:>3}. " if place == 0 else "     ", "     ")
        yield from _wrapped(f"({some(change.keys, at_most=NAMES_SHOWN)})", "       ", "       ")
    then = step.then
    yield (
        f"     busiest minute {before.busiest_minute.starts:,} -> {then.busiest_minute.starts:,}, "
        f"peak {before.peak:,} -> {then.peak:,}"
    )


def _rhythm(rhythm: Rhythm) -> str:
    interval = f"interval: {{every: {rhythm.every}}}"
    if rhythm.window is None:
        return interval
    window = window_text(rhythm.window)
    return (
        f'{interval}, placement: {{window: {{start: "{window["start"]}", end: "{window["end"]}"}}}}'
    )


def _together(found: Advice, then: Distribution) -> str:
    now, minute = found.now, then.busiest_minute
    all_of_them = "The step" if len(found.steps) == 1 else f"All {len(found.steps)} steps together"
    stay = ""
    if minute.fixed_alone:
        stay = (
            f" The schedules that stay fixed make {minute.fixed_alone:,} "
            f"{plural('start', minute.fixed_alone)} in a minute by themselves."
        )
    return (
        f"{all_of_them}: busiest minute {now.busiest_minute.starts:,} -> {minute.starts:,}, "
        f"peak {now.peak:,} -> {then.peak:,}, peak/mean {now.peak_to_mean:.2f} -> "
        f"{then.peak_to_mean:.2f}." + stay
    )


def _nothing(found: Advice) -> str:
    if not found.fixed:
        return "No schedule has fixed times: the operator places all of them."
    text = "No change of a fixed schedule would win anything."
    if any(left.reason == Reason.DAILY.value for left in found.left):
        text += " Those that run once a day were not tried: --daily tries them."
    return text


def _left(left: Left) -> list[str]:
    patterns = ", ".join(f"`{pattern}`" for pattern in left.patterns[:PATTERNS_NAMED])
    more = len(left.patterns) - PATTERNS_NAMED
    others = f" and {more:,} more" if more > 0 else ""
    return _wrapped(f"{len(left.keys):,} {left.reason}: {patterns}{others}", "  ", "    ")


def _next(given: GivenSet, found: Advice, asked: Asked) -> Iterator[str]:
    keys = [key for step in found.steps for change in step.changes for key in change.keys]
    cron_jobs = sum(is_cronjob(given.objects[key]) for key in keys)
    yield from _command([*asked.command, "-o manifests > changed.yaml"])
    more = (
        "" if asked.steps is not None else " With --steps N it writes those of the first N steps."
    )
    yield from _wrapped(f"writes the changed ScheduledJobs.{more}", *_IN)
    if cron_jobs < len(keys):
        yield "  mkdir -p even"
        yield from _command([*asked.command, "-o patch > even/kustomization.yaml"])
        yield from _wrapped("writes what changes in ScheduledJobs, for kustomize.", *_IN)
    yield from _command(["evenkeel load -f ...", *asked.options])
    yield from _wrapped(
        "shows these figures for your files, with the changed schedules in the place of the old "
        "ones.",
        *_IN,
    )
    if cron_jobs:
        yield from _wrapped(
            f"{_how_many(cron_jobs, len(keys))} CronJobs. Hand them over between two due times: "
            "suspend each CronJob, apply the ScheduledJobs, and delete each CronJob.",
            "  ",
            "  ",
        )
        yield from (f"    {each}" for each in HAND_OVER)
        yield from _wrapped("docs/cronjob.md tells what to know before.", "  ", "  ")


def _command(parts: Sequence[str]) -> Iterator[str]:
    """A command to copy, in as many lines as the terminal needs."""
    line = f"  {parts[0]}"
    for part in parts[1:]:
        if len(f"{line} {part} \\") > show.columns():
            yield f"{line} \\"
            line = f"    {part}"
        else:
            line = f"{line} {part}"
    yield line


_IN = ("      ", "      ")
_BLANK = "\x91"
"""Stands for a blank at which no line may end."""


def _how_many(part: int, whole: int) -> str:
    return "All of these are" if part == whole else f"Of these {whole:,} schedules {part:,} are"


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Lines of a text, no wider than the terminal. Words, and patterns between backquotes, are
    never cut."""
    kept = re.sub("`[^`]*`", lambda found: found[0].replace(" ", _BLANK), text)
    lines = textwrap.wrap(
        kept,
        show.columns(),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_BLANK, " ") for line in lines]
