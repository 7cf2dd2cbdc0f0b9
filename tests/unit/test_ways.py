"""The script that counts functions: each way comes to its end, and what ran is counted."""

import pytest
from tests import ways


@pytest.mark.parametrize("name", ways.WAYS)
def test_a_way_comes_to_its_end_through_the_core(name: str) -> None:
    found = ways.count(name)  # the way itself asserts what became of it

    assert "Scheduler.step" in found["core.scheduler"]
    assert not [name for names in found.values() for name in names if name.endswith(">")]
