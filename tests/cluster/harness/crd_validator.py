"""What the oldest Kubernetes that Evenkeel claims says to a CRD and to objects of its kind.

The program crdvalidator holds the validation of that version's API server, and no API server.
Called by tests through the fixture `crdvalidator`. Not guaranteed: unknown fields, which an API
server refuses while it decodes an object.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .report import HarnessError

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A create; with `old` an update; with `status` an update of the status alone."""

    new: Json
    old: Json | None = None
    status: bool = False


@dataclass(frozen=True, slots=True)
class CrdValidator:
    program: Path

    def judge(self, crd: Json, asked: Sequence[Asked] = ()) -> tuple[list[str], list[list[str]]]:
        """The refusals of the CRD, and those of each request."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "crd.json")
            file.write_text(json.dumps(crd))
            done = subprocess.run(
                [self.program, file],
                input="".join(_line(each) for each in asked),
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode != 0:
            raise HarnessError(f"{self.program.name} ended with {done.returncode}: {done.stderr}")
        about_crd, *answers = (json.loads(line) for line in done.stdout.splitlines())
        return about_crd, answers


def _line(asked: Asked) -> str:
    line = {"new": _named(asked.new), "status": asked.status}
    if asked.old is not None:
        line["old"] = _named(asked.old)
    return json.dumps(line) + "\n"


def _named(manifest: Json) -> Json:
    """As the API server has it by then: with a namespace, and of an update with a version."""
    named = {"namespace": "default", "resourceVersion": "1", "uid": "u", **manifest["metadata"]}
    return {**manifest, "metadata": named}
