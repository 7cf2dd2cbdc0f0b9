"""`evenkeel ledger audit`: compares the due times that were expected with those in the ledger.

The arithmetic is that of `evenkeel.ledger.audit`. Not guaranteed: that a state is true; the audit
counts rows and knows of no Job.
"""

import asyncio

import click

from evenkeel import rfc3339
from evenkeel.cli import show, stored
from evenkeel.cli.given import plural
from evenkeel.clock import SystemClock
from evenkeel.ledger.audit import Audit, Difference
from evenkeel.ledger.audit import audit as audited
from evenkeel.model import DAY_S, Instant

TOTALS = ("expected", "recorded", "unrecorded", "missing", "extra", "not_yet")


@click.command()
@stored.store_option
@click.option(
    "--from",
    "start",
    type=show.InstantParameter(),
    help="Start of the time span, inclusive, such as 2030-01-31T06:00:00Z.  [default: 24 h before "
    "--to]",
)
@click.option(
    "--to",
    "end",
    type=show.InstantParameter(),
    help="End of the time span, exclusive.  [default: now]",
)
@show.form_option
def audit(*, url: str | None, start: Instant | None, end: Instant | None, form: str) -> None:
    """Compare what was expected with what is recorded; exit code 1 where they differ.

    What was expected is computed from the timings that the ledger keeps, and nothing else. Missing
    and extra due times must both be 0; unrecorded ones are recorded as such, and no difference.
    """
    end = int(SystemClock().now()) if end is None else end
    start = max(0, end - DAY_S) if start is None else start
    if end <= start:
        raise click.BadParameter(
            f"{show.stamp(end)} is not after --from ({show.stamp(start)})", param_hint="--to"
        )
    with show.quiet_ending():
        found = asyncio.run(found_in(stored.url_of(url), start, end))
        if form == "json":
            show.say_json(document_of(found))
        else:
            click.echo("\n".join(in_words(found)))
    if not found.balanced:
        raise SystemExit(1)


async def found_in(url: str, start: Instant, end: Instant) -> Audit:
    async with stored.opened(url) as store:
        with show.waiting("reading rows"):
            return await audited(store, start, end)


def document_of(found: Audit) -> dict[str, object]:
    """The audit as one JSON object."""
    since = found.ledger_since
    return {
        "from": rfc3339.show(found.first),
        "to": rfc3339.show(found.end),
        **{name: getattr(found.found, name) for name in TOTALS},
        "ledger_since": None if since is None else rfc3339.show(since),
        "differences": [_document_of_one(each) for each in found.found.differences],
        "differences_not_listed": found.unlisted,
    }


def _document_of_one(difference: Difference) -> dict[str, object]:
    return {
        "schedule": difference.key,
        "uid": difference.uid,
        "wrong": str(difference.wrong),
        "count": difference.count,
        "instants": [rfc3339.show(instant) for instant in difference.instants],
    }


def in_words(found: Audit) -> list[str]:
    """The totals, and a line for each schedule with a difference."""
    since = found.ledger_since
    if since is None:
        return ["The ledger knows no schedule."]
    lines = [
        f"Due times of {found.schedules:,} {plural('schedule', found.schedules)} "
        f"from {show.stamp(found.first)} until {show.stamp(found.end)}",
        f"The ledger begins at {show.stamp(since)}.",
        "",
        *(f"{name.replace('_', ' '):<10}  {getattr(found.found, name):>12,}" for name in TOTALS),
        "",
    ]
    lines += [_line_of(each) for each in found.found.differences]
    if found.unlisted:
        lines.append(f"and {found.unlisted:,} more differences")
    if found.balanced:
        lines.append("Every due time is recorded once.")
    return lines


def _line_of(difference: Difference) -> str:
    instants = ", ".join(show.stamp(instant) for instant in difference.instants)
    more = ", ..." if difference.count > len(difference.instants) else ""
    return f"{difference.key}: {difference.count:,} {difference.wrong}: {instants}{more}"
