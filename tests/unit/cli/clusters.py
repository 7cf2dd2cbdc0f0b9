"""Clusters of CronJobs as people write them, from a seed: most of them start at full hours."""

import json
import random
from typing import Any

Json = dict[str, Any]

PATTERNS = {
    "0 * * * *": 20,
    "*/15 * * * *": 10,
    "*/5 * * * *": 8,
    "*/10 * * * *": 5,
    "*/30 * * * *": 6,
    "0 */6 * * *": 12,
    "0 */2 * * *": 8,
    "0 */4 * * *": 4,
    "0 0,12 * * *": 5,
    "30 * * * *": 4,
    "15 */3 * * *": 2,
    "@hourly": 3,
    "@daily": 4,
    "0 0 * * *": 12,
    "0 2 * * *": 8,
    "30 3 * * *": 4,
    "* * * * *": 2,
    "*/7 * * * *": 1,
    "0 9-17 * * *": 2,
    "*/20 8-18 * * 1-5": 3,
    "0 3,15,18 * * *": 1,
    "0 4 * * 0": 4,
    "0 0 1 * *": 3,
    "@every 90m": 1,
}
ZONES = (None, None, None, None, "Europe/Berlin", "Asia/Kolkata", "Etc/UTC")
TEXTS = ("y", "0o17", "1e3", "22:00", "null", " a: b ", "x: [1", "# no comment", "ümläut", "")
SCRIPT = 'set -e\nfor each in a b; do\n  echo "$each"  # twice\ndone\n'


def cron_jobs(seed: int, count: int = 900) -> list[Json]:
    """The objects. Those of an odd seed look as the API server prints them."""
    rng = random.Random(seed)
    return [_cron_job(rng, number, live=seed % 2 == 1) for number in range(count)]


def as_list(objects: list[Json]) -> str:
    """What `kubectl get -o json` prints."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _cron_job(rng: random.Random, number: int, *, live: bool) -> Json:
    metadata: Json = {"name": f"job-{number}", "namespace": f"team-{rng.randrange(7)}"}
    if rng.random() < 0.3:
        metadata["labels"] = {"app": rng.choice(("shop", "on", "1.0"))}
    if live:
        applied = json.dumps({"kind": "CronJob"})
        metadata |= {
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(rng.randrange(10**9)),
            "creationTimestamp": "2026-01-31T06:00:00Z",
            "generation": 1,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied},
            "managedFields": [{"manager": "kubectl", "operation": "Update"}],
        }
    spec: Json = {"schedule": rng.choices(list(PATTERNS), PATTERNS.values())[0]}
    zone = rng.choice(ZONES)
    if zone is not None:
        spec["timeZone"] = zone
    if rng.random() < 0.4:
        spec["concurrencyPolicy"] = rng.choice(("Forbid", "Replace"))
    if rng.random() < 0.1:
        spec["startingDeadlineSeconds"] = 200
    if rng.random() < 0.03:
        spec["suspend"] = True
    spec["jobTemplate"] = {"spec": {"backoffLimit": 2, "template": {"spec": _pod(rng)}}}
    found: Json = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
    if live:
        found["status"] = {"lastScheduleTime": "2026-11-17T22:00:00Z"}
    return found


def _pod(rng: random.Random) -> Json:
    environment = [{"name": f"V{n}", "value": text} for n, text in enumerate(TEXTS)]
    return {
        "restartPolicy": rng.choice(("Never", "OnFailure")),
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.35",
                "command": ["sh", "-c", SCRIPT],
                "env": rng.sample(environment, 3),
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            }
        ],
    }
