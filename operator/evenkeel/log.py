"""Log lines: one event with its fields in each line, as JSON or as text.

All modules call `log` with the name of an event and its fields. Only this module formats lines.
"""

import logging
import sys
from typing import Any

import orjson

_LOGGER = logging.getLogger("evenkeel")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FIELD_LENGTH_LIMIT = 1024


def log(event: str, *, level: str = "info", **fields: Any) -> None:
    """Log one event. Never pass a Job template, environment variables or a token."""
    number = _LEVELS[level]
    if _LOGGER.isEnabledFor(number):
        _LOGGER.log(number, event, extra={"fields": fields})


def set_up(*, json: bool, verbose: bool = False) -> None:
    """Send log lines to standard error, as JSON or as text. `verbose` adds level debug."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if json else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _LOGGER.setLevel(logging.DEBUG if verbose else logging.INFO)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = dict(getattr(record, "fields", {}))
    if record.exc_info and record.exc_info[0]:
        fields["error"] = f"{record.exc_info[0].__name__}: {record.exc_info[1]}"
    return {name: _short(value) for name, value in fields.items() if value not in ("", None)}


def _short(value: Any) -> Any:
    """Cut and clean a value: a user's text must not add lines, control a terminal or fill a
    disk."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = " ".join(str(value).split())[:FIELD_LENGTH_LIMIT]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "event": _short(record.getMessage()),
        }
        return orjson.dumps(line | _fields(record), default=str).decode()


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = self.formatTime(record, "%H:%M:%S") + f".{int(record.msecs):03d}"
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        return f"{clock} {level}{_short(record.getMessage())} {fields}".rstrip()
