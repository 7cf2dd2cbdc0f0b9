"""What the commands print with: times, tables, bars, progress, and an orderly end.

Only the answer of a command goes to standard output; all other lines go to standard error. Colours
and progress bars appear only on a terminal.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from evenkeel import rfc3339
from evenkeel.errors import BadField
from evenkeel.model import DAY_S, Instant
from evenkeel.resource.text import parse_instant
from evenkeel.when import parse_duration
from evenkeel.when.zone import MAX_INSTANT

LARGE_SET = 1_000
"""Sets of so many schedules get a progress bar: they take seconds."""

WIDEST_COLUMNS = 100
"""Lines are at most so wide, on wider terminals too: longer ones are hard to read."""

LONGEST_DURATION_S = 366 * DAY_S

_INTERRUPTED = 130
_PIPE_CLOSED = 141
"""The exit codes that a shell reports for a process that SIGINT or SIGPIPE ended."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


class InstantParameter(click.ParamType[Instant]):
    """An RFC 3339 time. A fraction is rounded up to the next second: due times are whole seconds,
    so the same ones lie in [from, to)."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Instant:
        if isinstance(value, int):
            return value
        text = str(value).upper()
        whole = re.sub(r"\.[0-9]+(?=[Z+-])", "", text)
        try:
            instant = parse_instant(whole)
        except ValueError as mistake:
            self.fail(f"{value!r}: {mistake}", param, ctx)
        fraction = re.search(r"\.([0-9]+)", text)
        return instant + (fraction is not None and fraction[1].strip("0") != "")


class DurationParameter(click.ParamType[int]):
    """A duration such as 90s or 1h30m, in seconds; at least one second."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            seconds = parse_duration(str(value), field="")
        except BadField as mistake:
            self.fail(mistake.sentence, param, ctx)
        if not 1 <= seconds <= LONGEST_DURATION_S:
            self.fail(f"{value!r} is not between 1s and 366d", param, ctx)
        return seconds


form_option = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for people, JSON for programs.",
)


@contextlib.contextmanager
def quiet_ending() -> Iterator[None]:
    """End without a message when the reader of the output is gone, or after Ctrl-C."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, and would print an error then.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(_PIPE_CLOSED) from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner on standard error, if that is a terminal.

    It is not shown if standard input is a terminal: somebody may be typing a manifest there, and
    the spinner would overwrite it.
    """
    if sys.stdin.isatty():
        yield
        return
    with console(error=True).status(what):
        yield


def standard_input() -> str:
    """All of standard input: the manifests of `-f -`."""
    return sys.stdin.read()


def say_json(value: object) -> None:
    """Print one JSON object to standard output."""
    click.echo(json.dumps(value, indent=2))


def say(text: str) -> None:
    """Print one line to standard error."""
    click.echo(text, err=True)


def write(text: str) -> None:
    """Print a part of the answer. Characters that the output cannot encode become `?`."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))


def columns() -> int:
    """The width of lines: that of the terminal, or 80 without one."""
    return console().width


def title(text: str) -> str:
    """A heading: bold on a terminal, unless NO_COLOR is set."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    return text if plain else click.style(text, bold=True)


def console(*, error: bool = False) -> Console:
    """A console of at most WIDEST_COLUMNS; without a terminal 80 wide and without colours."""
    made = Console(stderr=error, highlight=False, soft_wrap=False)
    made.width = min(made.width, WIDEST_COLUMNS)
    return made


@contextlib.contextmanager
def progress(what: str, total: int, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield `advance(steps)`, which moves a progress bar on standard error if that is a
    terminal."""
    errors = console(error=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=errors,
        transient=True,
        disable=not (shown and errors.is_terminal),
    ) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.advance(task, done)


def stamp(instant: Instant) -> str:
    """`2026-01-01T00:00:00Z`. A time after the year 9999 is shown as the last second of 9999."""
    shown = min(instant, MAX_INSTANT - 1)
    return rfc3339.show(shown).zfill(20)


def bar(value: float, *, full: float, columns: int, blocks: bool) -> str:
    """A horizontal bar; a value of `full` fills `columns`. With blocks it is exact to an eighth."""
    if full <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / full * columns * 8))
    if not blocks:
        return "#" * max(1, eighths // 8)
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def spark(values: Sequence[float], *, full: float, blocks: bool) -> str:
    """One small vertical bar for each value; a blank where the value is 0."""
    if not blocks:
        return ""
    top = len(_LEVELS) - 1
    return "".join(
        " " if value <= 0 or full <= 0 else _LEVELS[min(top, round(value / full * top))]
        for value in values
    )


def has_blocks(target: Console) -> bool:
    """Whether the output can encode block characters. Printing them elsewhere would raise."""
    return (target.encoding or "").lower().startswith("utf")
