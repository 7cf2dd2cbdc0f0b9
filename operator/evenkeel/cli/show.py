"""What the commands share towards a person at a terminal: quiet endings, progress, bars.

Standard output carries the answer and nothing else; everything said beside it goes to standard
error. Colours and progress appear only where a terminal is.
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
from evenkeel.model import Instant
from evenkeel.resource.text import parse_instant
from evenkeel.when.zone import MAX_INSTANT

LARGE_SET = 1_000
"""From so many steps on a person may wonder whether anything is happening."""

WIDEST_COLUMNS = 100
"""Wider lines are harder to follow than they are useful."""

_INTERRUPTED = 130
_PIPE_CLOSED = 141
"""What a shell reports for a process that SIGINT or SIGPIPE ended."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


class InstantParameter(click.ParamType[Instant]):
    """RFC 3339. A fraction of a second goes up: due times are whole seconds, so `[from, to)` keeps
    its meaning."""

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
    """End without a word when the reader of our output left, or the person pressed Ctrl-C."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit and would complain there.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(_PIPE_CLOSED) from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """A sign of life on standard error, if that is a terminal, while no steps can be counted.

    None while a person may be typing the manifests: it would dance over his words.
    """
    if sys.stdin.isatty():
        yield
        return
    with console(error=True).status(what):
        yield


def standard_input() -> str:
    """All of standard input, for `-f -`."""
    return sys.stdin.read()


def say_json(value: object) -> None:
    """One JSON object, as the whole answer."""
    click.echo(json.dumps(value, indent=2))


def say(text: str) -> None:
    """One line on standard error."""
    click.echo(text, err=True)


def write(text: str) -> None:
    """A large piece of the answer; what the terminal cannot show becomes a question mark."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))


def columns() -> int:
    """How wide lines may be: the terminal, or 80 where there is none."""
    return console().width


def title(text: str) -> str:
    """A heading, bold on a terminal that wants it."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    return text if plain else click.style(text, bold=True)


def console(*, error: bool = False) -> Console:
    """A console of at most WIDEST_COLUMNS; without a terminal it is 80 wide and plain."""
    made = Console(stderr=error, highlight=False, soft_wrap=False)
    made.width = min(made.width, WIDEST_COLUMNS)
    return made


@contextlib.contextmanager
def progress(what: str, total: int, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield `advance(steps)`; it moves a bar on standard error if that is a terminal."""
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
    """`2026-01-01T00:00:00Z`. What lies beyond the year 9999 is shown as its last second."""
    shown = min(instant, MAX_INSTANT - 1)
    return rfc3339.show(shown).zfill(20)


def bar(value: float, *, full: float, columns: int, blocks: bool) -> str:
    """A horizontal bar; `full` fills `columns`. Eighths of a column where blocks can be printed."""
    if full <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / full * columns * 8))
    if not blocks:
        return "#" * max(1, eighths // 8)
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def spark(values: Sequence[float], *, full: float, blocks: bool) -> str:
    """A column for each value; empty where the value is zero."""
    if not blocks:
        return ""
    top = len(_LEVELS) - 1
    return "".join(
        " " if value <= 0 or full <= 0 else _LEVELS[min(top, round(value / full * top))]
        for value in values
    )


def has_blocks(target: Console) -> bool:
    """Whether the output can carry block characters: an ASCII one would end in an exception."""
    return (target.encoding or "").lower().startswith("utf")
