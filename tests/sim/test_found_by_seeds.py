"""Seeds that were wrong once, and crash points that were: the track record of the simulator.

what was wrong                                                       shown by
-------------------------------------------------------------------  ---------------------------
a read by name without an answer was taken for somebody else's Job   115, 137; test_7_reading...
an edited timing was merged with the old one in the stored status    9; test_an_edited_timing...
two status writes of one schedule overtook one another: an older     crash 29 before in "Jobs
  document took back the mark that a create relied on                  that vanish soon"; 79
a status write that timed out landed after the next one, or on a     79, 36; test_13_the_old...
  schedule made anew: a uid is no precondition there, a version is     tests/contract
a cancelled run's Job was deleted before any status told of it, and  93
  the next process launched the run again
a run cancelled in the stored status was followed again after a      crash 19 after in "Replace
  crash, and counted twice                                             cancels"; 131
a run that left the queue stood nowhere while it was created         crash 30 after in "Queue"
due times of a new timing were swallowed by what was prepared ahead  test_a_timing_edited...
a retry's Job was not matched with the attempt that the status knew  301, 450
a Job that came and went before an older list was answered held its  669; test_24_a_job_that...
  place for ever
a paused schedule said Active=True                                   "pauses the schedule"
a watch that ends empty at once, for ever: five requests a second,   test_5...[empty]
  and nothing is ever seen again
history kept places for Jobs that were gone                          31, 2185
what was rendered for a run that another process made stayed         281
facts of Jobs, and times of status writes, of deleted schedules      9, 4
  stayed
an edit while the clock was set back reached behind the creation     1510
what a timing made due after a refused edit had ended it was         10108, 10145
  launched when another edit mended that
an instant that had run, under a status that could never be written,  2591
  was told to be past besides
after a crash the attempt was created again whose Job had been        7188
  deleted, because an earlier attempt's Job was all there was
a deleted schedule that a list no longer showed was taken in again   638
  when its watch, which lagged, told of an edit from before
a placed interval ran before its schedule's creation where a clock    42401, 43189
  was set back, and after an edit its due times had no verdict
a catch-up of runs with a short ttl wrote the status for each create  42527
Jobs of a catch-up failed by their pendingDeadlineSeconds seconds     21590
  after their create, where the clock was ahead of the API server's
a run that Replace cancelled before its create was sent got a Job all  30827
  the same
runs after the mark, of which a status names fifty, were counted as    53891, 57183
  lost although their Jobs were there
"""

import pytest
from tests.sim import modes

SEEDS = (
    4,
    8,
    9,
    20,
    27,
    31,
    36,
    46,
    64,
    79,
    87,
    93,
    115,
    131,
    137,
    159,
    172,
    281,
    288,
    301,
    423,
    450,
)
LATER = (
    549,
    605,
    638,
    669,
    684,
    715,
    1008,
    1221,
    1510,
    1520,
    2185,
    2251,
    2254,
    2267,
    2520,
    2591,
    7188,
    2717,
    2845,
    3287,
    3347,
    10108,
    10145,
    21590,
    30827,
    42401,
    42527,
    43189,
    53891,
    57183,
)
MISREAD = (
    863,
    4284,
    4327,
    5329,
    6447,
    22313,
    30060,
    30225,
    30570,
    31290,
    53826,
    54209,
    55628,
    56006,
    56009,
    57803,
    59683,
)
"""Right, and called wrong by the oracles."""


@pytest.mark.parametrize("seed", SEEDS + LATER + MISREAD)
def test_a_seed_that_was_wrong_once_is_right(seed: int) -> None:
    assert modes.storm(seed)[0] == []
