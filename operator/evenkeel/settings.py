"""All settings of the operator, each with its default and the reason for it.

`evenkeel run` reads them from a file, from `EVENKEEL_*` variables and from its options. A variable
overrides the file, an option overrides both.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

import pydantic
import pydantic.alias_generators
import yaml

from evenkeel import errors
from evenkeel.model import Weigh

_GROUPED = {
    "placement_mode": "placement",
    "placement_weigh": "placement",
    "placement_duration": "placement",
    "placement_keep_on_resume_s": "placement",
    "metrics_schedules": "metrics",
    "store_url": "store",
    "store_retention_days": "store",
    "store_retention_runs": "store",
    "store_max_size": "store",
    "store_buffer": "store",
    "requests_max_dues": "requests",
    "requests_max_unfinished": "requests",
}
"""The settings that stand in a mapping of the file, and the name of that mapping."""


_UNITS = ("", "Ki", "Mi", "Gi", "Ti")


def _name_in_file(field: str) -> str:
    """`pre_schedule_s` is called `preSchedule` in the file, where all times are seconds, and
    `placement_mode` is `mode` in the mapping `placement`."""
    camel = pydantic.alias_generators.to_camel
    if (group := _GROUPED.get(field)) is not None:
        return f"{group}.{camel(field.removeprefix(f'{group}_').removesuffix('_s'))}"
    return camel(field.removesuffix("_s"))


def _name_in_environment(field: str) -> str:
    return f"EVENKEEL_{field.removesuffix('_s').upper()}"


class Settings(pydantic.BaseModel):
    """The operator's settings; times are seconds."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        allow_inf_nan=False,
        extra="forbid",
        alias_generator=_name_in_file,
        validate_by_name=True,
        validate_by_alias=True,
    )

    health_listen: str = "127.0.0.1:8081"
    """Address of /livez, /readyz and /metrics."""

    namespaces: tuple[str, ...] = ()
    """Watch these namespaces only. Empty: the whole cluster."""

    pre_schedule_s: float = pydantic.Field(default=10, ge=0, le=300)
    """A run is taken up this long before its due time: its Job is rendered and a connection opened
    before the due second."""

    index_rebuild_s: float = pydantic.Field(default=60, gt=0)
    """The run index is rebuilt this often, even if nothing has changed."""

    lookahead_s: int = pydantic.Field(default=600, ge=1, le=64_800)
    """The run index holds the runs of this time from now. At most 18 h: the index holds a due time
    as a number of seconds in 16 bits."""

    grace_s: float = pydantic.Field(default=30, ge=1, le=3600)
    """A Job that cannot be created is tried again for this long; then missedRuns decides. Ended
    runs are remembered for the same time."""

    loop_interval_s: float = pydantic.Field(default=1, gt=0, le=60)
    """The scheduler steps at least this often, and always at the next due time."""

    inbox_size: int = pydantic.Field(default=1000, ge=10)
    """Most messages that wait for the scheduler. Beyond it questions are refused as busy; changes
    of one schedule become one message, and results of API calls wait."""

    min_interval_s: int = pydantic.Field(default=10, ge=1)
    """A shorter interval is refused: to create Jobs more often costs the cluster more than the
    runs."""

    pod_start_warning_s: float = pydantic.Field(default=120, ge=0)
    """A schedule whose Job has no started Pod after this time is Degraded, and says why. Longer
    than most images take to be pulled. 0: never."""

    strict_templates: bool = True
    """A Job whose template has a field that the API server does not know is refused. Otherwise the
    API server drops the field and only warns: a mistyped `command` runs what the image does by
    itself."""

    placement_mode: Literal["Balance", "Observe"] = "Balance"
    """With Observe the phase is a hash of the name, and the reason says which phase the load would
    have chosen: for trying the operator out."""

    placement_weigh: Weigh = "Runs"
    """What a run weighs whose schedule has no weight. With Requests the CPU requests of its
    template in tenths of a core: a run of eight cores is no more even than one of a tenth if both
    count as one."""

    placement_duration: Literal["Learned", "Ignore"] = "Learned"
    """Whether a run counts as load for as long as it is expected to last, or only in the slot in
    which it starts. How long that is, is learned from the last ten runs that succeeded."""

    placement_keep_on_resume_s: float = pydantic.Field(default=604_800, ge=0)
    """A schedule that was suspended or paused for longer is placed afresh when it goes on; with 0
    always. A week, so that neither a maintenance nor a long weekend moves the nightly job."""

    placement_cooldown_s: float = pydantic.Field(default=3600, ge=0)
    """A rebalance does not move a schedule that was placed less than this time ago."""

    protection_window_s: float = pydantic.Field(default=1800, ge=0)
    """A rebalance does not move a schedule that is due within this time, or within half its
    interval if that is shorter."""

    creates_in_flight: int = pydantic.Field(default=48, ge=1, le=512)
    """Most concurrent creates. Above 64 the API server queues them, and the rate grows no more.
    Requested runs have at most a quarter of these."""

    status_in_flight: int = pydantic.Field(default=4, ge=1, le=64)
    """Most concurrent status patches of ScheduledJobs, and as many of RunRequests. Few, so that
    they do not delay creates."""

    request_timeout_s: float = pydantic.Field(default=10, gt=0)
    """The time-out of each API call. By default the client libraries would wait for ever."""

    prune_s: float = pydantic.Field(default=600, gt=0)
    """ScheduledJobs and RunRequests are listed this often, to notice deletions that the watch did
    not report: a deleted schedule must create no more Jobs."""

    metrics_schedules: Literal["Auto", "On", "Off"] = pydantic.Field(
        default="Auto",
        json_schema_extra={
            "type": ["string", "boolean"],
            "enum": ["Auto", "On", "Off", True, False],
        },
    )
    """Whether /metrics/schedules shows metrics that name schedules. With Auto only up to 5,000
    schedules: of more, these series would be most of what a Prometheus holds."""

    data: str = ""
    """The data directory. Empty: $XDG_STATE_HOME/evenkeel, or ~/.local/state/evenkeel."""

    store_url: str = ""
    """Where the ledger is kept: sqlite:///path/to/file.db, postgresql://user@host/database, or
    none. Empty: evenkeel.db in the data directory where that can be written, else none."""

    store_retention_days: float = pydantic.Field(default=30, gt=0, le=36_500)
    """The ledger keeps the row of each run for so long; then it counts the runs of each day."""

    store_retention_runs: int = pydantic.Field(default=1000, ge=1, le=1_000_000)
    """The ledger keeps at most so many runs that one schedule has made by itself: a schedule of
    every ten seconds must not push the weekly one out, and a backfill not the runs before it."""

    store_max_size: int = pydantic.Field(
        default=2**30,
        ge=2**20,
        le=2**50,
        json_schema_extra={"type": ["integer", "string"], "pattern": "^[0-9]+([KMGT]i)?$"},
    )
    """From this size on, in bytes, the oldest rows of the ledger are counted by day, too."""

    store_buffer: int = pydantic.Field(default=50_000, ge=1000, le=10_000_000)
    """Most rows that wait for a store that is away, about a kilobyte each. Beyond it the oldest are
    dropped, and the ledger says later of which due times nothing is recorded."""

    requests_max_dues: int = pydantic.Field(default=10_000, ge=1, le=10_000)
    """Most due times in the range of a RunRequest. Its status has one bit for each."""

    requests_max_unfinished: int = pydantic.Field(default=100, ge=1, le=10_000)
    """Most RunRequests of a namespace that are under way. The others wait, the oldest first."""

    @pydantic.field_validator("store_max_size", mode="before")
    @classmethod
    def _in_bytes(cls, value: object) -> object:
        """People write sizes as Kubernetes does."""
        if not isinstance(value, str):
            return value
        found = re.fullmatch(r"([0-9]{1,15})(Ki|Mi|Gi|Ti)?", value.strip())
        if found is None:
            raise ValueError("write a size, such as 1Gi")
        return int(found[1]) * 1024 ** _UNITS.index(found[2] or "")

    @pydantic.field_validator("metrics_schedules", mode="before")
    @classmethod
    def _without_quotes(cls, value: object) -> object:
        """On and Off are words of YAML for true and false."""
        return {True: "On", False: "Off"}[value] if isinstance(value, bool) else value

    @pydantic.field_validator("namespaces")
    @classmethod
    def _are_namespaces(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
                raise ValueError(f"{name!r} is not a name of a namespace")
        return tuple(dict.fromkeys(names))

    @pydantic.model_validator(mode="after")
    def _rebuilds_before_the_index_ends(self) -> Self:
        if self.index_rebuild_s >= self.lookahead_s:
            raise ValueError(
                f"indexRebuild ({self.index_rebuild_s:g}) must be below lookahead "
                f"({self.lookahead_s}): the index would be empty before it is rebuilt"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _fits_the_index(self) -> Self:
        if self.lookahead_s + self.grace_s > 65_000:
            raise ValueError(
                f"lookahead ({self.lookahead_s}) and grace ({self.grace_s:g}) must not exceed "
                "65000 together: the index holds a due time as a number of seconds in 16 bits"
            )
        return self

    def warnings(self) -> list[str]:
        """A sentence for each setting that is legal but does not do what it is for."""
        found = []
        if self.grace_s <= self.loop_interval_s:
            found.append(
                f"grace ({self.grace_s:g}) should exceed loopInterval ({self.loop_interval_s:g}), "
                "or the grace of a run can end between two steps of the scheduler"
            )
        if self.pre_schedule_s < self.loop_interval_s:
            found.append(
                f"preSchedule ({self.pre_schedule_s:g}) should be at least loopInterval "
                f"({self.loop_interval_s:g}), or runs are taken up late"
            )
        return found


_FIELDS_IN_SECONDS = [name for name in Settings.model_fields if name.endswith("_s")]
_NUMBER_MISTAKES = {
    f"{kind}_{what}" for kind in ("int", "float") for what in ("parsing", "type", "from_float")
}


def load(
    *, file: Path | None, environment: Mapping[str, str] = os.environ, **flags: object
) -> Settings:
    """Settings from a YAML file, variables and options; the later of these overrides the
    earlier."""
    values: dict[str, object] = {}
    if file is not None:
        values.update(_read_file(file))
    for name in Settings.model_fields:
        if (text := environment.get(_name_in_environment(name))) is not None:
            values[name] = _names(text) if name == "namespaces" else text
    values.update({name: value for name, value in flags.items() if value})
    # pydantic would take an alias and a field name as two settings; the later must win.
    aliases = {_name_in_file(name): name for name in Settings.model_fields}
    merged = {aliases.get(name, name): value for name, value in values.items()}
    try:
        return Settings.model_validate(merged)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(_name_in_file(str(part)) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] in _NUMBER_MISTAKES:
            seconds = any(_name_in_file(name) == where for name in _FIELDS_IN_SECONDS)
            message = f"write a plain number{' of seconds' if seconds else ''}, such as 30"
        elif first["type"] in ("bool_parsing", "bool_type"):
            message = "write true or false"
        elif first["type"] == "tuple_type":
            message = "write a list, such as [shop, web]"
        elif first["type"] == "literal_error":
            message = f"write {first['ctx']['expected']}".replace("'", "")
        elif first["type"] == "string_type":
            message = "write a text in quotes"
        if first["type"] == "extra_forbidden":
            where = str(first["loc"][0])  # as it was written: `_name_in_file` would mend it
            message = "there is no such setting"
            if near := difflib.get_close_matches(_name_in_file(where), list(aliases), n=1):
                message += f"; did you mean {near[0]}?"
        raise errors.BadSetting(f"{where}: {message}" if where else message) from None


def _names(text: str) -> tuple[str, ...]:
    """The names in a variable. An empty one means the whole cluster."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _read_file(file: Path) -> dict[str, object]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise errors.BadSetting(f"--config {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise errors.BadSetting(f"--config {file}: not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise errors.BadSetting(
            f"--config {file}: not YAML: {' '.join(str(error).split())}"
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise errors.BadSetting(f"--config {file}: expected a mapping of settings")
    for group in set(_GROUPED.values()):
        if content.get(group, {}) is None:  # all of its lines are commented out
            del content[group]
        elif isinstance(content.get(group), dict):
            content |= {f"{group}.{name}": value for name, value in content.pop(group).items()}
    return content
