"""What passes as the same output, and what does not."""

from __future__ import annotations

import pytest
from tests.docs.shape import same

PRINTED = """\
NAME    SCHEDULE    NEXT                   AGE
sweep   every 25m   2026-11-18T16:20:01Z   3s
12s   placed
...
  Normal  Created  24s (x4 over 84s)  by  job sweep-29916963
  Normal  Created  24s  by  job sweep-q05ncwgx-29916963
{"failed":0}
"""
SAID = """\
NAME   SCHEDULE  NEXT  AGE
sweep  every 25m  2031-01-01T00:00:00Z  2m10s
1s  placed
anything
at all
  Normal  Created  1s  by  job sweep-31916963
  Normal  Created  1s  by  job sweep-q0abcdef-31916963
{"failed":12}
"""


def test_times_spaces_and_left_out_lines_may_differ() -> None:
    assert same(PRINTED, PRINTED.replace("...\n", ""))
    assert same(PRINTED, SAID)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        pytest.param("every 25m", "every 26m", id="a number that is no age"),
        pytest.param("2031-01-01T00:00:00Z", "", id="no instant"),
        pytest.param("2m10s", "soon", id="no age"),
        pytest.param("sweep-31916963", "sweep", id="no stamp"),
        pytest.param("-q0abcdef", "", id="no kind"),
        pytest.param('"failed"', '"lost"', id="another word"),
        pytest.param("NAME ", "NAME SPACE ", id="another heading"),
        pytest.param('{"failed":12}\n', '{"failed":12}\nmore\n', id="one more line"),
    ],
)
def test_all_else_must_be_as_printed(was: str, becomes: str) -> None:
    assert was in SAID
    assert not same(PRINTED, SAID.replace(was, becomes))
