"""Reads rows: pages, states, books, facts. Each call is one transaction that sees one moment;
of what is read in parts (schedules, books), each part is."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from evenkeel.ledger.cleaning import clean_text
from evenkeel.ledger.pages import (
    LONGEST_PAGE,
    Place,
    Placed,
    page,
    read_cursor,
    run_place,
    span_place,
    wants_spans,
)
from evenkeel.ledger.postgres import shapes
from evenkeel.ledger.postgres.connections import Connection
from evenkeel.ledger.postgres.finding import Question, runs_question, spans_questions
from evenkeel.ledger.postgres.running import Runner
from evenkeel.ledger.postgres.shapes import Record
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.ledger.ranges import widen
from evenkeel.ledger.rows import (
    Book,
    Facts,
    Minute,
    Page,
    RunQuery,
    ScheduleRow,
    SpanRow,
    TimingRow,
)
from evenkeel.model import Instant, RunId, RunState

SCHEDULES_AT_ONCE = 500
BOOKS_AT_ONCE = 50
"""With a thousand rows of each schedule, a transaction reads 50,000."""


async def read_page(connection: Connection, sql: Statements, query: RunQuery) -> Page:
    after = read_cursor(query.cursor)
    limit = max(1, min(query.limit, LONGEST_PAGE)) + 1
    ids = None
    if query.namespace or query.name:
        names = clean_text(query.namespace), clean_text(query.name)
        ids = [record["id"] for record in await connection.fetch(sql["schedule_ids"], *names)]
    runs: list[Record] = []
    if question := runs_question(query, after, ids, limit):
        runs = await _ask(connection, sql, question)
    spans: list[Record] = []
    if wants_spans(query):
        for question in spans_questions(query, after, ids, limit):
            spans += await _ask(connection, sql, question)
    return page(query, map(_placed_run, runs), map(_placed_span, spans))


async def _ask(connection: Connection, sql: Statements, question: Question) -> list[Record]:
    text, values = question
    found: list[Record] = await connection.fetch(sql.qualified(text), *values)
    return found


def _placed_run(record: Record) -> Placed:
    row = shapes.run_of(record, record["uid"], record["key"])
    if record["due_at"] is not None:
        row = replace(row, due_at=record["due_at"], priority=record["priority"])
    return run_place(row, record["schedule"]), row


def _placed_span(record: Record) -> tuple[Place, SpanRow]:
    row = shapes.span_of(record, record["uid"], record["key"])
    return span_place(row, record["schedule"]), row


async def read_states(
    connection: Connection, sql: Statements, runs: Sequence[RunId]
) -> dict[RunId, RunState]:
    keys = shapes.run_keys(runs, [])[1:]
    records = await connection.fetch(sql["states"], [clean_text(run.uid) for run in runs], *keys)
    return {
        RunId(record["uid"], record["due"], record["kind"]): RunState(record["state"])
        for record in records
    }


async def read_unfinished(connection: Connection, sql: Statements, uid: str) -> tuple[RunId, ...]:
    records = await connection.fetch(sql["unfinished"], clean_text(uid))
    return tuple(RunId(uid, record["due"], record["kind"]) for record in records)


async def read_minutes(
    connection: Connection, sql: Statements, first: Instant, end: Instant
) -> tuple[Minute, ...]:
    records = await connection.fetch(sql["minutes"], first, end)
    return tuple(shapes.minute_of(record) for record in records)


async def read_facts(connection: Connection, sql: Statements, schema: str, where: str) -> Facts:
    record = await connection.fetchrow(sql["facts"], schema)
    return Facts(
        kind="postgresql",
        where=where,
        born=record["born"],
        since=record["since"],
        written_at=record["written_at"],
        term=record["term"],
        migration=record["migration"],
        bytes=record["bytes"],
    )


async def read_schedules(run: Runner, sql: Statements) -> AsyncIterator[ScheduleRow]:
    async for some in _schedules(run, sql, (), SCHEDULES_AT_ONCE):
        for record in some:
            yield shapes.schedule_of(record)


async def read_books(
    run: Runner, sql: Statements, first: Instant, end: Instant, uids: Sequence[str]
) -> AsyncIterator[Book]:
    async for some in _schedules(run, sql, uids, BOOKS_AT_ONCE):

        async def books(connection: Connection, some: list[Record] = some) -> list[Book]:
            return await _books(connection, sql, some, first, end)

        for book in await run(books, reading=True):
            yield book


async def _schedules(
    run: Runner, sql: Statements, uids: Sequence[str], limit: int
) -> AsyncIterator[list[Record]]:
    """Parts of the schedules, by key and uid."""
    values = [[clean_text(uid) for uid in uids]] if uids else []
    statement = sql["schedules_of" if uids else "schedules"]
    after = "", ""
    while True:

        async def some(connection: Connection, after: tuple[str, str] = after) -> list[Record]:
            found: list[Record] = await connection.fetch(statement, *after, limit, *values)
            return found

        records = await run(some, reading=True)
        if records:
            yield records
        if len(records) < limit:
            return
        after = records[-1]["key"], records[-1]["uid"]


async def _books(
    connection: Connection, sql: Statements, some: list[Record], first: Instant, end: Instant
) -> list[Book]:
    schedules = {record["id"]: shapes.schedule_of(record) for record in some}
    asked = dict.fromkeys(schedules, (first, end))
    spans = await _widened(connection, sql, schedules, asked)
    timings: dict[int, list[TimingRow]] = {number: [] for number in schedules}
    for record in await connection.fetch(sql["timings"], list(schedules)):
        schedule = schedules[record["schedule"]]
        timing = TimingRow(schedule.uid, schedule.key, record["after"], record["fields"])
        timings[record["schedule"]].append(timing)
    runs: dict[int, list[tuple[Instant, RunState]]] = {number: [] for number in schedules}
    for record in await connection.fetch(sql["book_runs"], *_asked_columns(asked)):
        runs[record["schedule"]].append((record["due"], RunState(record["state"])))
    return [
        Book(
            schedule=schedule,
            timings=tuple(timings[number]),
            spans=tuple(spans[number]),
            runs=tuple(runs[number]),
            first=asked[number][0],
            end=asked[number][1],
        )
        for number, schedule in schedules.items()
    ]


async def _widened(
    connection: Connection,
    sql: Statements,
    schedules: dict[int, ScheduleRow],
    asked: dict[int, tuple[Instant, Instant]],
) -> dict[int, list[SpanRow]]:
    """The range rows that touch the asked time, which is widened until it cuts none."""
    spans: dict[int, list[SpanRow]] = {}
    ahead = dict(asked)
    while ahead:
        found: dict[int, list[SpanRow]] = {number: [] for number in ahead}
        for record in await connection.fetch(sql["book_spans"], *_asked_columns(ahead)):
            schedule = schedules[record["schedule"]]
            row = shapes.span_of(record, schedule.uid, schedule.key)
            found[record["schedule"]].append(row)
        spans |= found
        wider = {number: widen(*ahead[number], found[number]) for number in ahead}
        ahead = {number: both for number, both in wider.items() if both != asked[number]}
        asked |= ahead
    return spans


def _asked_columns(asked: dict[int, tuple[Instant, Instant]]) -> shapes.Columns:
    return [
        list(asked),
        [first for first, _ in asked.values()],
        [end for _, end in asked.values()],
    ]
