"""Reads a ScheduledJob, whatever it contains, into a Schedule or a Rejection.

`read` is called for every watch event, for each object of the list at start (10,000 of them take a
second of CPU), and by `evenkeel plan`. It never raises: a wrong object becomes a Rejection with a
sentence for its owner, and other schedules do not notice. Pydantic checks the shape, `rules` checks
fields that depend on one another, and `when` checks that the timing is possible. The Job template
is not checked (the API server checks it, by the CRD and by a dry run); it is kept as bytes.

An accepted schedule need not ever run: an `at` in the past is accepted.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from evenkeel.errors import BadField
from evenkeel.model import (
    At,
    Cron,
    DayMatch,
    Fold,
    Gap,
    Hourly,
    Interval,
    Parameter,
    PlacementWish,
    Rejection,
    Retry,
    Rule,
    Schedule,
    Timing,
    Window,
)
from evenkeel.reasons import ConditionReason
from evenkeel.resource.guard import QUOTED_MAX, Identity, checked, created, guarded, note
from evenkeel.resource.names import NOTE_TRIGGER
from evenkeel.resource.parameters import bake
from evenkeel.resource.rules import MANUAL_SELECTOR, RULES, SELECTOR
from evenkeel.resource.text import parse_clock, parse_instant
from evenkeel.resource.v1alpha1 import IntervalSpec, ParameterSpec, PlacementSpec, Spec
from evenkeel.resource.weight import weight_by_requests
from evenkeel.when import compile_timing, format_duration, parse_duration
from evenkeel.when.compile import LONGEST_INTERVAL_S

IMAGES_MAX = 10
"""Images that a status shows: nobody reads more of them in a table."""

TEMPLATE_BYTES = 256 * 1024
"""A template stays in memory as long as its schedule does. At 1 MB each, two hundred of one tenant
would take the memory of all."""

PARAMETERS_BYTES = 128 * 1024
"""They stay in memory as the template does. 20 values of 4 KiB have room; 50 choices of 4 KiB have
none."""

HASH_BYTES = 10
"""80 bits: among a million templates two have the same hash with a probability of 10^-12."""


def read(raw: Mapping[str, Any], *, min_interval_s: int = 10) -> Schedule | Rejection:
    """The schedule of an object, or the reason for which it is not accepted."""
    return guarded(raw, lambda whose: _schedule(raw, whose, min_interval_s=min_interval_s))


def read_spec(raw: object) -> Spec:
    """The spec, checked by shape and rules. BadField names the first mistake with its full path."""
    return checked(Spec, RULES, raw)


def _schedule(raw: Mapping[str, Any], whose: Identity, *, min_interval_s: int) -> Schedule:
    spec = read_spec(raw.get("spec"))
    timing = _timing(spec, min_interval_s=min_interval_s)
    _prove(timing, seed=f"{whose.ns}/{whose.name}")
    parameters = _parameters(spec.parameters or ())
    template = _template(spec.job_template, parameters)
    return Schedule(
        uid=whose.uid,
        ns=whose.ns,
        name=whose.name,
        created=created(raw),
        generation=whose.generation,
        timing=timing,
        template=template,
        template_hash=hashlib.blake2b(template, digest_size=HASH_BYTES).hexdigest(),
        suspend=spec.suspend,
        starting_deadline_s=spec.starting_deadline_seconds,
        missed_runs=spec.missed_runs,
        catch_up_limit=spec.catch_up_limit,
        concurrency=spec.concurrency_policy,
        max_queued=spec.max_queued,
        priority=spec.priority,
        placement=_placement(spec.placement),
        retry=Retry(
            limit=spec.retry.limit,
            delay_s=spec.retry.delay_seconds,
            factor=spec.retry.factor,
            max_delay_s=spec.retry.max_delay_seconds,
        ),
        pause_after_failures=spec.pause_after_failures,
        pending_deadline_s=spec.pending_deadline_seconds,
        keep_succeeded=spec.successful_jobs_history_limit,
        keep_failed=spec.failed_jobs_history_limit,
        ttl_s=_ttl_s(spec.job_template),
        weight_by_requests=weight_by_requests(spec.job_template),
        images=_images(spec.job_template),
        parameters=parameters,
        trigger=note(raw, NOTE_TRIGGER),
    )


# --- timing -----------------------------------------------------------------------------------


def _timing(spec: Spec, *, min_interval_s: int) -> Timing:
    return Timing(
        rule=_rule(spec, min_interval_s=min_interval_s),
        zone=spec.time_zone,
        gap=spec.dst.gap if spec.dst is not None else Gap.SHIFT,
        fold=spec.dst.fold if spec.dst is not None else Fold.FIRST,
        start=None if spec.start_time is None else parse_instant(spec.start_time),
        end=None if spec.end_time is None else parse_instant(spec.end_time),
    )


def _rule(spec: Spec, *, min_interval_s: int) -> Rule:
    if spec.schedule is not None:
        return Cron(spec.schedule, spec.day_match or DayMatch.OR)
    if spec.hourly is not None:
        return Hourly(spec.hourly.minute)
    if spec.interval is not None:
        return _interval(spec.interval, min_interval_s=min_interval_s)
    assert spec.at is not None, "RULES let exactly one through"
    return _at(spec)


def _interval(spec: IntervalSpec, *, min_interval_s: int) -> Interval:
    every_s = parse_duration(spec.every, field="spec.interval.every")
    if not 1 <= every_s <= LONGEST_INTERVAL_S:
        raise BadField("spec.interval.every", "must be between 1s and 366d")
    if every_s < min_interval_s:
        raise BadField(
            "spec.interval.every",
            f"{spec.every} is too frequent: this operator takes {format_duration(min_interval_s)}"
            " or longer (setting minInterval)",
            reason=ConditionReason.TOO_FREQUENT,
        )
    if spec.offset is None:
        return Interval(every_s)
    offset_s = parse_duration(spec.offset, field="spec.interval.offset")
    if offset_s >= every_s:
        raise BadField(
            "spec.interval.offset", f"must be shorter than interval.every ({spec.every})"
        )
    return Interval(every_s, offset_s, None if spec.anchor is None else parse_instant(spec.anchor))


def _at(spec: Spec) -> At:
    assert spec.at is not None
    instant = parse_instant(spec.at)
    if spec.start_time is not None and instant < parse_instant(spec.start_time):
        raise BadField(
            "spec.at", "is before startTime: it never runs", reason=ConditionReason.NEVER_FIRES
        )
    if spec.end_time is not None and instant >= parse_instant(spec.end_time):
        raise BadField(
            "spec.at", "is not before endTime: it never runs", reason=ConditionReason.NEVER_FIRES
        )
    return At(instant)


def _prove(timing: Timing, *, seed: str) -> None:
    """Refuse a timing that `when` cannot compile. An interval without offset is checked with offset
    0."""
    if isinstance(timing.rule, Interval) and timing.rule.offset_s is None:
        timing = replace(timing, rule=replace(timing.rule, offset_s=0))
    try:
        compile_timing(timing, seed=seed)
    except BadField as mistake:
        reason = mistake.reason
        if reason is ConditionReason.INVALID:
            reason = ConditionReason.INVALID_SCHEDULE
        raise BadField(f"spec.{mistake.field}", mistake.sentence, reason=reason) from None


# --- the rest ---------------------------------------------------------------------------------


def _placement(spec: PlacementSpec) -> PlacementWish:
    window = None
    if spec.window is not None:
        window = Window(parse_clock(spec.window.start), parse_clock(spec.window.end))
    return PlacementWish(weight=spec.weight, window=window, pinned=spec.pinned)


def _parameters(specs: Sequence[ParameterSpec]) -> tuple[Parameter, ...]:
    parameters = tuple(Parameter(one.name, one.value, tuple(one.enum or ())) for one in specs)
    size = sum(len(text.encode()) for one in parameters for text in (one.value, *one.choices))
    if size > PARAMETERS_BYTES:
        sentence = (
            f"have {math.ceil(size / 1024)} KiB of values, and at most {PARAMETERS_BYTES // 1024}"
            " KiB are taken: name large texts in enum by short words"
        )
        raise BadField("spec.parameters", sentence)
    return parameters


def _template(template: dict[str, Any], parameters: tuple[Parameter, ...]) -> bytes:
    job_spec = template.get("spec")
    if not isinstance(job_spec, dict):
        raise BadField("spec.jobTemplate.spec", "is required")
    if not isinstance(job_spec.get("template"), dict):
        raise BadField("spec.jobTemplate.spec.template", "is required")
    if job_spec.get("selector") is not None:
        raise BadField("spec.jobTemplate.spec.selector", SELECTOR)
    if job_spec.get("manualSelector"):
        raise BadField("spec.jobTemplate.spec.manualSelector", MANUAL_SELECTOR)
    try:
        # Sorted: a template whose keys only changed their order must keep its hash.
        text = orjson.dumps(bake(template, parameters), option=orjson.OPT_SORT_KEYS)
    except TypeError as wrong:  # too deep, an integer beyond 64 bits, half a surrogate pair
        sentence = f"cannot be sent as JSON: {str(wrong)[:QUOTED_MAX]}"
        raise BadField("spec.jobTemplate", sentence) from None
    if len(text) > TEMPLATE_BYTES:
        added = " with the parameters in each container" if parameters else ""
        sentence = (
            f"has {math.ceil(len(text) / 1024)} KiB of JSON{added}, and at most"
            f" {TEMPLATE_BYTES // 1024} KiB are taken: keep large texts in a ConfigMap that the Pod"
            " mounts"
        )
        raise BadField("spec.jobTemplate", sentence)
    return text


def _ttl_s(template: dict[str, Any]) -> int | None:
    ttl = template["spec"].get("ttlSecondsAfterFinished")
    return ttl if type(ttl) is int and ttl >= 0 else None


def _images(template: dict[str, Any]) -> tuple[str, ...]:
    pod = template["spec"]["template"].get("spec")
    containers = pod.get("containers") if isinstance(pod, dict) else None
    if not isinstance(containers, list):
        return ()
    images = [one.get("image") for one in containers[:IMAGES_MAX] if isinstance(one, dict)]
    return tuple(image[:QUOTED_MAX] for image in images if isinstance(image, str))
