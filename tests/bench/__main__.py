"""`python -m tests.bench [--only AREA] [--json FILE]`: measure, and compare with range.toml.

Every module beside this one that does not begin with `_` is an area and has `rows()`, which yields
`{"name", "value", "unit"}` and whatever stands beside the value in the same run. JSON goes to
standard output, progress to standard error. Exit 1: a range is broken, or nothing measured it.
"""

import argparse
import fnmatch
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
import tomllib
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench._measure import LONG, say

HERE = Path(__file__).parent
LIBRARIES = ("numpy", "croniter", "cronsim", "tzdata", "orjson", "pydantic")
Row = dict[str, Any]
Ranges = Mapping[str, Mapping[str, Any]]
"""The bounds of one area: by a row's name, or a pattern of names."""


def main(arguments: list[str]) -> int:
    areas = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=areas, help="measure this area (repeatable)"
    )
    parser.add_argument("--json", type=Path, help="write the JSON to this file too")
    parser.add_argument("--long", action="store_true", help="the forms that take minutes more, too")
    options = parser.parse_args(arguments)
    if options.long:
        os.environ[LONG] = "yes"

    ranges = bounds_of(tomllib.loads((HERE / "range.toml").read_text()), long=options.long)
    rows: list[Row] = []
    machine = machine_now()
    for area in areas if options.only is None else sorted(set(options.only)):
        rows.extend(measure(area, ranges.get(area, {})))
    machine["load_1min_after"] = round(os.getloadavg()[0], 2)

    broken = [row for row in rows if row["ok"] is False]
    report = {"machine": machine, "versions": versions(), "rows": rows, "ok": not broken}
    text = json.dumps(report, indent=1)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")
    for row in broken:
        say(f"BROKEN {row['area']}: {row['name']}: {row['value']} {row['unit']}, {row['target']}")
    return 1 if broken else 0


def measure(area: str, ranges: Ranges) -> Iterator[Row]:
    """The rows of one area, judged; an area that breaks is one broken row, the others go on."""
    unmeasured = set(ranges)
    started = time.perf_counter()
    try:
        for raw in importlib.import_module(f"tests.bench.{area}").rows():
            name, bound = bound_of(raw["name"], ranges)
            unmeasured.discard(name)
            row = judged(area, raw, bound)
            mark = {True: "ok    ", False: "BROKEN", None: "      "}[row["ok"]]
            say(f"{mark} {area}: {row['name']}: {row['value']} {row['unit']} {row['target']}")
            yield row
    except Exception as error:  # noqa: BLE001 - whatever breaks, the other areas still report
        traceback.print_exc()
        yield {
            "area": area,
            "name": area,
            "value": f"{type(error).__name__}: {error}",
            "unit": "",
            "target": "runs to its end",
            "ok": False,
            "beside": {},
        }
        return
    # A renamed row would otherwise lose its target without a word.
    for name in sorted(unmeasured):
        yield judged(area, {"name": name, "value": None, "unit": "not measured"}, ranges[name])
    say(f"       {area}: {time.perf_counter() - started:.0f} s")


def bounds_of(found: Mapping[str, Ranges], *, long: bool) -> dict[str, Ranges]:
    """Without what only --long measures."""
    return {
        area: {name: bound for name, bound in ranges.items() if long or not bound.get("long")}
        for area, ranges in found.items()
    }


def bound_of(row_name: str, ranges: Ranges) -> tuple[str, Mapping[str, Any] | None]:
    """The range of a row: by its own name, else the first pattern that fits, else none."""
    if row_name in ranges:
        return row_name, ranges[row_name]
    for pattern, bound in ranges.items():
        if fnmatch.fnmatchcase(row_name, pattern):
            return pattern, bound
    return "", None


def judged(area: str, raw: Mapping[str, Any], bound: Mapping[str, Any] | None) -> Row:
    """A row as it is printed. `ok` is null where range.toml sets no bound."""
    value = raw["value"]
    beside = dict(raw.get("beside", {}))
    beside |= {k: v for k, v in raw.items() if k not in ("name", "value", "unit", "beside")}
    row: Row = {
        "area": area,
        "name": raw["name"],
        "value": rounded(value),
        "unit": raw["unit"],
        "target": "",
        "ok": None,
        "beside": {name: rounded(number) for name, number in beside.items()},
    }
    if bound is not None:
        at_least, at_most = bound.get("at_least"), bound.get("at_most")
        row["target"] = " ".join(
            [f">= {at_least}"] * (at_least is not None) + [f"<= {at_most}"] * (at_most is not None)
        )
        row["ok"] = (
            value is not None
            and (at_least is None or value >= at_least)
            and (at_most is None or value <= at_most)
        )
        row["how"] = bound["how"]
    return row


def rounded(value: Any) -> Any:
    """Four digits: more would be the machine's noise."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def machine_now() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "load_1min_before": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    known = {"python": platform.python_version()}
    return known | {name: importlib.metadata.version(name) for name in LIBRARIES}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
