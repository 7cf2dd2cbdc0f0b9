"""The inbox: hints coalesce, results and queries are bounded, nothing taken in is lost."""

from hypothesis import given
from hypothesis import strategies as st

from evenkeel.core import messages
from evenkeel.core.inbox import Inbox
from evenkeel.model import RunId


def ask(n: int) -> messages.GetRun:
    return messages.GetRun(n, RunId("uid", n))


def test_hints_of_one_object_coalesce_to_the_newest():
    inbox = Inbox(size=10)
    for uid in ("a", "b", "a", "a"):
        inbox.hint(uid, messages.ScheduleGone(uid))
    inbox.hint("a", messages.ScheduleGone("newest"))
    assert [message.uid for message in inbox.drain(10)] == ["newest", "b"]


def test_a_full_inbox_refuses_results_and_queries_but_never_a_hint():
    inbox = Inbox(size=3)
    assert [inbox.offer(ask(n)) for n in range(5)] == [True, True, True, False, False]
    for n in range(100):
        inbox.hint(n, messages.ScheduleGone(str(n)))
    assert len(inbox) == 103
    inbox.drain(1)
    assert inbox.offer(ask(9))


def test_ten_thousand_hints_do_not_refuse_a_result():
    inbox = Inbox(size=10)
    for n in range(10_000):
        inbox.hint(n, messages.ScheduleGone(str(n)))
    assert inbox.offer(ask(1))


def test_the_inbox_wakes_the_loop():
    inbox, woken = Inbox(size=1), []
    inbox.on_arrival = lambda: woken.append(1)
    inbox.hint("a", messages.ScheduleGone("a"))
    inbox.offer(ask(1))
    inbox.offer(ask(2))
    assert len(woken) == 2


@given(
    st.lists(st.tuples(st.sampled_from(["hint", "offer", "drain"]), st.integers(0, 5)), max_size=60)
)
def test_nothing_that_was_taken_in_is_lost(steps):
    inbox, owed, got = Inbox(size=4), {}, []
    for number, (what, key) in enumerate(steps):
        message = ask(number)
        if what == "hint":
            inbox.hint(key, message)
            owed["hint", key] = message
        elif what == "offer" and inbox.offer(message):
            owed["offer", number] = message
        elif what == "drain":
            taken = inbox.drain(key)
            assert len(taken) <= key
            got += taken
            owed = {name: kept for name, kept in owed.items() if kept not in taken}
    assert sorted(message.ask for message in owed.values()) == sorted(
        message.ask for message in inbox.drain(100)
    )
    assert len(inbox) == 0 and not inbox.full
