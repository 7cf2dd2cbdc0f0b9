"""Every knob and limit of the product, with its default and its reason.

`evenkeel run` builds it from a file, `EVENKEEL_*` variables and flags, in that order of strength.
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


def _name_in_file(field: str) -> str:
    """`pre_schedule_s` is `preSchedule` to people: all times are seconds there."""
    if field == "placement_mode":
        return "placement.mode"
    return pydantic.alias_generators.to_camel(field.removesuffix("_s"))


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

    listen: str = "127.0.0.1:8080"
    """Where /livez, /readyz and /metrics answer."""

    namespaces: tuple[str, ...] = ()
    """Only these; empty: the whole cluster."""

    pre_schedule_s: float = pydantic.Field(default=10, ge=0, le=300)
    """Orchestrators start this early: to render bodies and warm connections before the second."""

    index_rebuild_s: float = pydantic.Field(default=60, gt=0)
    """The run index is rebuilt this often even when nothing changed."""

    lookahead_s: int = pydantic.Field(default=600, ge=1, le=64_800)
    """How far the index sees; at most 18 h, because a run is a 16-bit second in it."""

    grace_s: float = pydantic.Field(default=30, ge=1, le=3600)
    """How long a run that could not be created keeps trying, and an ended run is remembered."""

    loop_interval_s: float = pydantic.Field(default=1, gt=0, le=60)
    """The loop wakes at least this often; it also wakes exactly at the next due time."""

    inbox_size: int = pydantic.Field(default=1000, ge=10)
    """Queries beyond it are refused as busy; watch hints coalesce, results wait."""

    min_interval_s: int = pydantic.Field(default=10, ge=1)
    """A shorter interval is refused: Job creation costs more than that is worth."""

    placement_mode: Literal["Balance", "Observe"] = pydantic.Field(
        default="Balance", alias="placement.mode"
    )
    """Observe places by hash and only says what the load would have chosen: for a careful start."""

    placement_cooldown_s: float = pydantic.Field(default=3600, ge=0)
    """A rebalance does not move what was placed less than this ago."""

    protection_window_s: float = pydantic.Field(default=1800, ge=0)
    """A rebalance does not move what is due within this, capped at half its interval."""

    creates_in_flight: int = pydantic.Field(default=48, ge=1, le=512)
    """Concurrent creates; above 64 the API server's own queue grows, not the rate."""

    status_in_flight: int = pydantic.Field(default=4, ge=1, le=64)
    """Concurrent status patches: they must never crowd out creates."""

    request_timeout_s: float = pydantic.Field(default=10, gt=0)
    """Every call has one: the client libraries' default is to wait for ever."""

    prune_s: float = pydantic.Field(default=600, gt=0)
    """Own LIST against missed deletions: a deleted schedule must not go on creating Jobs."""

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
                f"({self.lookahead_s}): the index would run dry before it is rebuilt"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _fits_the_index(self) -> Self:
        if self.lookahead_s + self.grace_s > 65_000:
            raise ValueError(
                f"lookahead ({self.lookahead_s}) and grace ({self.grace_s:g}) must not exceed "
                "65000 together: a run in the index is a 16-bit second"
            )
        return self

    def warnings(self) -> list[str]:
        """Settings that work but defeat their purpose, as sentences."""
        found = []
        if self.grace_s <= self.loop_interval_s:
            found.append(
                f"grace ({self.grace_s:g}) should exceed loopInterval ({self.loop_interval_s:g}), "
                "or a run can leave its grace between two looks"
            )
        if self.pre_schedule_s < self.loop_interval_s:
            found.append(
                f"preSchedule ({self.pre_schedule_s:g}) should be at least loopInterval "
                f"({self.loop_interval_s:g}), or runs are prepared late"
            )
        return found


_FIELDS_IN_SECONDS = [name for name in Settings.model_fields if name.endswith("_s")]
_NUMBER_MISTAKES = {
    f"{kind}_{what}" for kind in ("int", "float") for what in ("parsing", "type", "from_float")
}


def load(
    *, file: Path | None, environment: Mapping[str, str] = os.environ, **flags: object
) -> Settings:
    """Settings from a YAML file, the environment and flags; the later wins."""
    values: dict[str, object] = {}
    if file is not None:
        values.update(_read_file(file))
    for name in Settings.model_fields:
        if (text := environment.get(_name_in_environment(name))) is not None:
            values[name] = _names(text) if name == "namespaces" else text
    values.update({name: value for name, value in flags.items() if value})
    # An alias and a field name for one setting would both be kept: the later must win.
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
        elif first["type"] == "tuple_type":
            message = "write a list, such as [shop, web]"
        if first["type"] == "extra_forbidden":
            message = "there is no such setting"
            if near := difflib.get_close_matches(where, list(aliases), n=1):
                message += f"; {near[0]} was meant, perhaps"
        raise errors.BadSetting(f"{where}: {message}" if where else message) from None


def _names(text: str) -> tuple[str, ...]:
    """A variable that is set and empty names none: the whole cluster."""
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
    placement = content.get("placement")
    if isinstance(placement, dict):
        del content["placement"]
        content |= {f"placement.{name}": value for name, value in placement.items()}
    return content
