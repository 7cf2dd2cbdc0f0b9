"""The log lines of runs: when they begin, and how they end. `app` calls it."""

from evenkeel import rfc3339
from evenkeel.core.effects import RunBegan, RunEnded, SpanEnded, ToldBy
from evenkeel.core.schedule import tell
from evenkeel.log import log
from evenkeel.model import RunState

_LEVELS = {RunState.SUCCEEDED: "debug", RunState.MISSED: "warning"}


def _request(key: str, told_by: ToldBy | None) -> dict[str, str]:
    """Of a requested run: its request, which is in the namespace of its schedule."""
    return {} if told_by is None else {"request": f"{key.partition('/')[0]}/{told_by.name}"}


def began(began: RunBegan) -> None:
    """The Job of an attempt exists."""
    log(
        "run began",
        level="debug",
        schedule=began.key,
        **_request(began.key, began.told_by),
        due=rfc3339.show(began.run.due),
        attempt=began.attempt,
        job=began.job,
    )


def ended(ended: RunEnded) -> None:
    """A run has come to its end."""
    log(
        f"run {ended.state}",
        level=_LEVELS.get(ended.state, "info"),
        schedule=ended.key,
        **_request(ended.key, ended.told_by),
        due=rfc3339.show(ended.run.due),
        reason=ended.reason or "",
        attempt=ended.attempt if ended.job else "",
        job=ended.job,
        **tell.fields(ended.cause),
    )


def span_ended(ended: SpanEnded) -> None:
    """So many due times have one end."""
    log(
        f"runs {ended.state}",
        level=_LEVELS.get(ended.state, "info"),
        schedule=ended.key,
        due=rfc3339.show(ended.first),
        until=rfc3339.show(ended.last),
        count=ended.count,
        reason=ended.reason,
    )
