"""`evenkeel ledger check`: says what is wrong with what a store holds.

It reads all of the store. Not guaranteed: that every changed bit is found; a store notices what
breaks its own form or the rules between rows, and a number may become another number.
"""

import asyncio

import click

from evenkeel import rfc3339
from evenkeel.cli import show, stored
from evenkeel.ledger.rows import Facts


@click.command()
@stored.store_option
@show.form_option
def check(*, url: str | None, form: str) -> None:
    """Say what is wrong with a store; exit code 1 if anything is.

    It reads all rows. The operator may go on meanwhile.
    """
    with show.quiet_ending():
        facts, wrong = asyncio.run(checked(stored.url_of(url)))
        if form == "json":
            show.say_json({**_described(facts), "wrong": wrong})
        else:
            click.echo(in_words(facts))
            for sentence in wrong or ["Nothing is wrong."]:
                click.echo(sentence)
    if wrong:
        raise SystemExit(1)


async def checked(url: str) -> tuple[Facts, list[str]]:
    async with stored.opened(url) as store:  # apart: who does not answer is not waited for long
        facts = await store.facts()
    async with stored.opened(url, within_s=stored.WHOLE_WITHIN_S) as store:
        with show.waiting("reading all rows"):
            return facts, await store.check()


def in_words(facts: Facts) -> str:
    """One line: which store, how large, since when, written last."""
    written = "nothing written yet"
    if facts.written_at:
        written = f"written last at {show.stamp(int(facts.written_at))}"
    return (
        f"{facts.kind} {facts.where}: {facts.bytes / 1e6:,.1f} MB, "
        f"begun at {show.stamp(int(facts.since))}, {written}"
    )


def _described(facts: Facts) -> dict[str, object]:
    return {
        "kind": facts.kind,
        "where": facts.where,
        "bytes": facts.bytes,
        "since": rfc3339.show_exact(facts.since),
        "writtenAt": rfc3339.show_exact(facts.written_at) if facts.written_at else None,
        "term": facts.term,
        "migration": facts.migration,
    }
