"""`evenkeel runs`: prints rows of the ledger, straight from the store and without the operator.

The newest due time stands first. Rows are printed page by page while they are read, so a year of
them needs no more memory than a day. Not guaranteed: that a run of the last moments has a row yet;
the operator writes one after its status.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import click

from evenkeel.cli import show, stored
from evenkeel.cli.runs_table import RunsTable
from evenkeel.ledger.documents import document_of
from evenkeel.ledger.rows import UNRECORDED, RunQuery, RunRow, SpanRow
from evenkeel.model import Instant, RunState

PAGE = 500
"""So many rows are read at a time: the most that a store gives at once."""


@click.command()
@click.argument("name", required=False, default="")
@stored.store_option
@click.option("-n", "--namespace", metavar="NS", default="", help="Runs of this namespace only.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([*map(str, RunState), UNRECORDED]),
    metavar="STATE",
    help="Rows with this state only, such as failed. May be repeated.",
)
@click.option(
    "--reason",
    "reasons",
    multiple=True,
    metavar="WORD",
    help="Rows with this reason only, such as overlap. May be repeated.",
)
@click.option(
    "--request", metavar="NAME", default="", help="Runs that this RunRequest asked for only."
)
@click.option(
    "--since", type=show.InstantParameter(), help="Due at this time or later: 2030-01-31T06:00:00Z."
)
@click.option("--until", type=show.InstantParameter(), help="Due before this time.")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="Print the newest N rows only."
)
@show.form_option
def runs(
    *,
    name: str,
    url: str | None,
    namespace: str,
    states: tuple[str, ...],
    reasons: tuple[str, ...],
    request: str,
    since: Instant | None,
    until: Instant | None,
    limit: int | None,
    form: str,
) -> None:
    """Print what became of due times, from the ledger's store. NAME is a schedule's, with or
    without its namespace.

    A row is a run, or a range of due times that were skipped, missed or folded as a whole. With -o
    json each line is one row. For example:

    \b
      evenkeel runs -n shop sweep --limit 20
      evenkeel runs -n shop --request sweep-again
      evenkeel runs --state failed --since 2030-01-31T00:00:00Z
      evenkeel runs --store sqlite:///srv/evenkeel.db -o json
    """
    ns, name = schedule_of(namespace, name)
    if since is not None and until is not None and until <= since:
        raise click.BadParameter(
            f"{show.stamp(until)} is not after --since ({show.stamp(since)})", param_hint="--until"
        )
    query = RunQuery(
        namespace=ns,
        name=name,
        states=frozenset(states),
        reasons=frozenset(reasons),
        request=request,
        since=since,
        until=until,
    )
    with show.quiet_ending():
        printed = asyncio.run(print_rows(stored.url_of(url), query, limit, form))
        if not printed and limit != 0:
            show.say("the ledger has no run yet" if query == RunQuery() else "no run matches")


def schedule_of(namespace: str, name: str) -> tuple[str, str]:
    """Namespace and name of NAME, which may be `namespace/name` as the rows show it."""
    before, slash, after = name.partition("/")
    if not slash:
        return namespace, name
    if namespace and namespace != before:
        raise click.UsageError(f"{name} is not in the namespace {namespace} of -n")
    return before, after


async def print_rows(url: str, query: RunQuery, limit: int | None, form: str) -> int:
    """Print page after page, and return the number of rows."""
    table = RunsTable()
    printed = 0
    async with stored.opened(url) as store:
        cursor = ""
        while limit is None or printed < limit:
            wanted = PAGE if limit is None else min(PAGE, limit - printed)
            page = await store.runs(replace(query, limit=wanted, cursor=cursor))
            show.write(json_lines(page.items) if form == "json" else table.lines(page.items))
            printed += len(page.items)
            cursor = page.next
            if not cursor:
                break
    return printed


def json_lines(rows: Sequence[RunRow | SpanRow]) -> str:
    return "".join(f"{json.dumps(document_of(row))}\n" for row in rows)
