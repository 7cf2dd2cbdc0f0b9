"""`evenkeel ledger copy`: copies all rows of one store into another, of either kind.

For backups, for restoring them, and for moving from SQLite to PostgreSQL or back. What the other
store has already stays as it is, so an interrupted copy is run again. At the end the rows of both
stores are counted. Not guaranteed: rows that an operator writes while the copy goes on; run it
again, or stop the operator first.
"""

import asyncio
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import click

from evenkeel.cli import show, stored
from evenkeel.cli.given import plural
from evenkeel.ledger.store import BadStore, RunStore


@dataclass(slots=True)
class Copied:
    """Rows by table."""

    read: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    there: Counter[str] = field(default_factory=Counter)
    """In the other store at the end."""

    @property
    def lacking(self) -> list[str]:
        """A sentence for each table of which the other store has fewer rows."""
        return [
            f"{table}: {count:,} rows were read, and the copy has {self.there[table]:,}"
            for table, count in self.read.items()
            if self.there[table] < count
        ]


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@show.form_option
def copy(*, source: str, target: str, form: str) -> None:
    """Copy all rows of the store FROM into the store TO.

    Either may be SQLite or PostgreSQL. TO is made where it does not exist; rows that it has already
    stay as they are, so running the command again is safe. For example:

    \b
      evenkeel ledger copy sqlite:///srv/evenkeel.db sqlite:///backup/evenkeel.db
      evenkeel ledger copy sqlite:///srv/evenkeel.db postgresql://evenkeel@db/evenkeel
    """
    with show.quiet_ending():
        copied = asyncio.run(copied_all(source, target))
        if form == "json":
            show.say_json({"tables": _documents(copied), "lacking": copied.lacking})
        else:
            click.echo("\n".join(_lines(copied)))
        for sentence in copied.lacking:
            show.say(sentence)
    if copied.lacking:
        raise SystemExit(1)


def _documents(copied: Copied) -> dict[str, dict[str, int]]:
    return {
        table: {"read": count, "added": copied.added[table], "there": copied.there[table]}
        for table, count in copied.read.items()
    }


def _lines(copied: Copied) -> list[str]:
    lines = [show.title(f"{'TABLE':<10}  {'READ':>12}  {'ADDED':>12}  {'IN COPY':>12}")]
    for table, count in copied.read.items():
        added, there = copied.added[table], copied.there[table]
        lines.append(f"{table:<10}  {count:>12,}  {added:>12,}  {there:>12,}")
    return lines


async def copied_all(source: str, target: str) -> Copied:
    """Copy, and count what is there at the end."""
    copied = Copied()
    async with (
        stored.opened(source) as old,
        stored.opened(target, readonly=False) as new,
    ):
        one, other = await old.facts(), await new.facts()
        if (one.where, one.born) == (other.where, other.born):
            raise BadStore("FROM and TO are the same store")
        await _move(old, new, copied)
        with show.waiting("counting the copy"):
            async for chunk in new.export():
                copied.there[chunk.table] += len(chunk.rows)
    return copied


async def _move(old: RunStore, new: RunStore, copied: Copied) -> None:
    """One table after the other: each has a progress bar, and a line where there is no terminal."""
    shown = ""
    with ExitStack() as bar:
        advance = None
        async for chunk in old.export():
            if not chunk.rows:
                continue
            if chunk.table != shown:
                bar.close()
                shown = chunk.table
                if not sys.stderr.isatty():
                    show.say(f"{shown}: {chunk.total:,} {plural('row', chunk.total)}")
                advance = bar.enter_context(show.progress(shown, chunk.total))
            copied.added[chunk.table] += await new.restore(chunk)
            copied.read[chunk.table] += len(chunk.rows)
            assert advance is not None
            advance(len(chunk.rows))
