"""The soft limit of open files is raised to the hard one."""

import resource
from collections.abc import Iterator

import pytest

from evenkeel.process import raise_file_limit


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """As containerd leaves them: a soft limit of 1,024 below a higher hard one."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] <= 1024:
        pytest.skip("the hard limit of this machine is that low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_is_raised(limits: tuple[int, int]) -> None:
    raise_file_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == limits[1]
    assert soft > 1024
    assert soft in (hard, 1_048_576)


def test_a_limit_that_was_raised_stays(limits: tuple[int, int]) -> None:
    raise_file_limit()
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_file_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == raised
