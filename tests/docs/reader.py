"""Somebody who follows a page on a real cluster: types its commands, and compares what they say.

Called by the tests of this directory, which get one from the fixture `reader` (conftest.py).
kubectl's output is compared in shape (shape.py), for it prints ages and dates.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.operator_process import OperatorProcess, environment
from tests.cluster.world import PATIENCE_S, World, eventually
from tests.docs.blocks import PROGRAMS, Block, shell
from tests.docs.shape import same


@dataclass
class Reader:
    """Somebody with a shell, kubectl for one namespace, and the files that the pages name."""

    world: World
    operator: OperatorProcess
    ns: str
    directory: Path

    def types(self, line: str) -> str:
        """What the shell says to one line."""
        programs = [str(Path(self.world.cluster.kubectl_program).parent), os.environ["PATH"]]
        return shell(
            line,
            directory=self.directory,
            environment={
                **environment({}),
                "KUBECONFIG": str(self.directory / "kubeconfig"),
                "PATH": os.pathsep.join([str(PROGRAMS), *programs]),
            },
        ).stdout

    def types_until_it_says(self, line: str, printed: str, *, within_s: float) -> None:
        """A status is written a moment after what it tells: a person looks again, too."""
        said = ""

        def look() -> bool:
            nonlocal said
            said = self.types(line)
            assert same(printed, said), f"$ {line}\n{said}"
            return True

        eventually(look, f"$ {line}\n{printed}", every_s=0.5, within_s=within_s)

    def follows(self, page: Block, *, within_s: float = PATIENCE_S) -> None:
        """All commands of a block, each with the output that stands below it."""
        for command in page.commands:
            self.types_until_it_says(command.line, command.output, within_s=within_s)

    def has_file(self, name: str, content: str) -> None:
        (self.directory / name).write_text(content)
