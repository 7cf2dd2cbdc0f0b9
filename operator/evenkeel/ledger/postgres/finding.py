"""The SQL of one page of rows: which index leads to the rows that a query asks for. Pure.

Of all schedules, rows are read newest first from the index over due times; of few schedules, the
newest of each from the index over schedules. Runs that ended otherwise than in success, those
that have a reason, and those that a request asked for have indexes of their own, and so has each
state that a range row counts. Not guaranteed: that a page whose rows are rare among those of its
index (failed runs among many that were skipped) is found without reading many. The time-out of a
call bounds that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from evenkeel.ledger.cleaning import clean_text
from evenkeel.ledger.pages import Place
from evenkeel.ledger.ranges import OPEN_LAST
from evenkeel.ledger.rows import UNRECORDED, RunQuery
from evenkeel.model import BY_SCHEDULE, RunState

_COUNTED = frozenset({*map(str, RunState), UNRECORDED})
"""What range rows may count."""

FEW = 200
"""So many schedules are read one by one: above, they are a good part of all rows."""

MANY_REASONS = 10
"""So many parts would a statement have at most, one a reason."""

_RUNS = """\
SELECT p.*, s.uid, s.key, d.due_at, d.priority
FROM ({page}) AS p
JOIN {{schema}}.schedule s ON s.id = p.schedule
LEFT JOIN {{schema}}.deferred d
  ON d.schedule = p.schedule AND d.due = p.due AND d.kind = p.kind
ORDER BY p.due DESC, p.schedule DESC, p.kind DESC
LIMIT {limit}"""
_RUNS_OF_ALL = """\
(SELECT r.*
FROM {{schema}}.run r
WHERE {where}
ORDER BY r.due DESC, r.schedule DESC, r.kind DESC
LIMIT {limit})"""
_RUNS_OF_FEW = """\
SELECT found.*
FROM unnest({ids}::integer[]) AS wanted (id)
CROSS JOIN LATERAL (
  SELECT r.*
  FROM {{schema}}.run r
  WHERE r.schedule = wanted.id AND {where}
  ORDER BY r.due DESC, r.kind DESC
  LIMIT {limit}) AS found
ORDER BY found.due DESC, found.schedule DESC, found.kind DESC
LIMIT {limit}"""
_SPANS = """\
SELECT p.*, s.uid, s.key
FROM ({page}) AS p
JOIN {{schema}}.schedule s ON s.id = p.schedule
ORDER BY p.last DESC, p.schedule DESC, (p.kind || '/' || p.reason) DESC, p.first DESC
LIMIT {limit}"""
_SOME_SPANS = """\
(SELECT r.schedule, r.kind, r.first, r.reason, r.last, r.counts
FROM {{schema}}.span r
WHERE {where}
ORDER BY r.last DESC, r.schedule DESC, (r.kind || '/' || r.reason) DESC, r.first DESC
LIMIT {limit})"""


@dataclass(slots=True)
class _Conditions:
    words: list[str] = field(default_factory=lambda: ["true"])
    values: list[object] = field(default_factory=list)

    def value(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"

    def any_of(self, column: str, wanted: frozenset[str]) -> None:
        if wanted:
            texts = sorted(clean_text(text) for text in wanted)
            self.words.append(f"{column} = ANY ({self.value(texts)}::text[])")

    @property
    def where(self) -> str:
        return " AND ".join(self.words)


Question = tuple[str, list[object]]
"""A statement and its values."""


def runs_question(
    query: RunQuery, after: Place | None, ids: Sequence[int] | None, limit: int
) -> Question | None:
    """Runs of these schedules, None: of all. None: no run can be among the wanted ones."""
    found = _Conditions()
    if query.states:
        # Written out, the planner sees which index has them all.
        states = sorted(query.states & frozenset(map(str, RunState)))
        if not states:
            return None
        words = ", ".join(f"'{state}'" for state in states)
        found.words.append(f"r.state IN ({words})")
    found.any_of("r.kind", query.kinds)
    if query.request:
        found.words.append(f"r.request = {found.value(clean_text(query.request))}::text")
    if query.request or (query.kinds and BY_SCHEDULE not in query.kinds):
        found.words.append(f"r.kind <> '{BY_SCHEDULE}'")
    if query.since is not None:
        found.words.append(f"r.due >= {found.value(query.since)}::bigint")
    if query.until is not None:
        found.words.append(f"r.due < {found.value(query.until)}::bigint")
    if after is not None:
        at, number = found.value(after.at), found.value(after.schedule)
        name = found.value(clean_text(after.name) if after.is_run else "")
        found.words.append(f"r.due <= {at}::bigint")
        found.words.append(
            f"(r.due, r.schedule, r.kind) < ({at}::bigint, {number}::bigint, {name}::text)"
        )
    if ids is not None and len(ids) <= FEW:
        wanted = found.value(list(ids))
        found.any_of("r.reason", query.reasons)
        page = _RUNS_OF_FEW.format(ids=wanted, where=found.where, limit=limit)
    else:
        _only(found, ids)
        parts = _by_reason(found, query.reasons)
        page = _joined("UNION ALL", _RUNS_OF_ALL, found.where, parts, limit)
    return _RUNS.format(page=page, limit=limit), found.values


def spans_questions(
    query: RunQuery, after: Place | None, ids: Sequence[int] | None, limit: int
) -> list[Question]:
    """Range rows: the open ones, then those that have an end; in this order they are newest
    first."""
    if query.states and not query.states & _COUNTED:
        return []
    return [
        _spans_question(query, after, ids, limit, is_open=True),
        _spans_question(query, after, ids, limit, is_open=False),
    ]


def _spans_question(
    query: RunQuery,
    after: Place | None,
    ids: Sequence[int] | None,
    limit: int,
    *,
    is_open: bool,
) -> Question:
    found = _Conditions()
    found.words.append(f"r.last {'=' if is_open else '<'} {OPEN_LAST}")
    if query.until is not None:
        column = "r.first" if is_open else "r.last"
        found.words.append(f"{column} < {found.value(query.until)}::bigint")
    if query.since is not None and not is_open:
        found.words.append(f"r.last >= {found.value(query.since)}::bigint")
    if after is not None:
        at, number = found.value(after.at), found.value(after.schedule)
        place = f"({at}::bigint, {number}::bigint)"
        found.words.append(f"(r.last, r.schedule) <= {place}")
        if not after.is_run:
            name, first = found.value(clean_text(after.name)), found.value(after.first)
            found.words.append(
                f"((r.last, r.schedule) < {place} OR (r.kind || '/' || r.reason, r.first)"
                f" < ({name}::text, {first}::bigint))"
            )
    _only(found, ids)
    if query.states:
        found.any_of("r.reason", query.reasons)
        # Each state has an index of its own, whose words these are.
        states = sorted(query.states & _COUNTED)
        parts = [f"r.counts LIKE '%\"{state}\":%'" for state in states]
    else:
        parts = _by_reason(found, query.reasons)
    page = _joined("UNION", _SOME_SPANS, found.where, parts, limit)
    return _SPANS.format(page=page, limit=limit), found.values


def _by_reason(found: _Conditions, reasons: frozenset[str]) -> list[str]:
    """Conditions for rows of these reasons, to be read one after the other: the index of reasons is
    in the order of a page for one reason only."""
    if not reasons or "" in reasons or len(reasons) > MANY_REASONS:
        found.any_of("r.reason", reasons)
        return ["true"]
    return [
        f"r.reason <> '' AND r.reason = {found.value(clean_text(reason))}::text"
        for reason in sorted(reasons)
    ]


def _joined(how: str, select: str, where: str, parts: Sequence[str], limit: int) -> str:
    """A statement with a part for each of the conditions."""
    return f"\n{how}\n".join(
        select.format(where=f"{where} AND {part}", limit=limit) for part in parts
    )


def _only(found: _Conditions, ids: Sequence[int] | None) -> None:
    if ids is not None:
        found.words.append(f"r.schedule = ANY ({found.value(list(ids))}::integer[])")
