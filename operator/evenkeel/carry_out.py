"""What the scheduler wants, done: the whole list. `app` builds it, and the loop calls it.

Not in the list are the effects that are computed in another thread: see `loop.OFFLOADED`.
"""

import asyncio
from dataclasses import dataclass

from evenkeel import run_lines
from evenkeel.core import effects
from evenkeel.kube.errands import Errands
from evenkeel.kube.events import Events
from evenkeel.kube.launcher import Launcher
from evenkeel.kube.request_errands import RequestErrands
from evenkeel.kube.status_sync import StatusSync
from evenkeel.ledger.sync import LedgerSync
from evenkeel.log import log
from evenkeel.web.metrics import Metrics


@dataclass(frozen=True, slots=True)
class CarryOut:
    """The parts that carry out effects."""

    launcher: Launcher
    status_sync: StatusSync
    request_sync: StatusSync
    errands: Errands
    request_errands: RequestErrands
    events: Events
    ledger: LedgerSync
    metrics: Metrics

    def __call__(self, effect: effects.Effect) -> None:
        """Carry out one effect, or begin to."""
        if not (self._of_jobs(effect) or self._of_objects(effect) or self._of_runs(effect)):
            self._said(effect)

    def _of_jobs(self, effect: effects.Effect) -> bool:
        """Jobs and their Pods."""
        match effect:
            case effects.Prepare():
                self.launcher.prepare(effect)
            case effects.Launch():
                self.launcher.launch(effect)
            case effects.Withdraw():
                self.launcher.withdraw(effect)
            case effects.DeleteJob():
                self.errands.delete_job(effect)
            case effects.FindJob():
                self.errands.find_job(effect)
            case effects.LookAtPods():
                self.errands.look_at_pods(effect)
            case effects.CheckTemplate():
                self.errands.check_template(effect)
            case effects.ConfirmTime():
                self.errands.confirm_time(effect)
            case _:
                return False
        return True

    def _of_objects(self, effect: effects.Effect) -> bool:
        """ScheduledJobs and RunRequests."""
        match effect:
            case effects.WriteStatus(uid=uid, awaited=awaited):
                self.status_sync.dirty(uid, awaited=awaited)
            case effects.Forget(uid=uid):
                self.status_sync.forget(uid)
                self.errands.forget(uid)
                self.request_errands.forget_schedule(uid)
            case effects.ReadSchedule():
                self.errands.read_schedule(effect)
            case effects.WriteRequest(uid=uid, awaited=awaited):
                self.request_sync.dirty(uid, awaited=awaited)
            case effects.ForgetRequest(uid=uid):
                self.request_sync.forget(uid)
            case effects.ReadRequest():
                self.request_errands.read(effect)
            case effects.DeleteRequest():
                self.request_errands.delete(effect)
            case effects.MakeRequest():
                self.request_errands.make(effect)
            case _:
                return False
        return True

    def _of_runs(self, effect: effects.Effect) -> bool:
        """What becomes of runs: the ledger, metrics and log lines."""
        match effect:
            case effects.RunBegan():
                run_lines.began(effect)
            case effects.RunEnded(key=key, state=state, reason=reason):
                if effect.told_by is None:
                    self.metrics.ended(_namespace(key), state, reason, 1)
                else:
                    self.metrics.requests.run_ended(state)
                run_lines.ended(effect)
            case effects.SpanEnded(key=key, state=state, reason=reason, count=count):
                self.metrics.ended(_namespace(key), state, reason, count)
                run_lines.span_ended(effect)
            case (
                effects.ScheduleKnown()
                | effects.TimingBegan()
                | effects.RunWaits()
                | effects.SpanOpened()
                | effects.SpanClosed()
                | effects.StatusTold()
                | effects.ScheduleEnded()
                | effects.AskLedger()
                | effects.AskRuns()
                | effects.RequestKnown()
                | effects.RequestTold()
                | effects.RequestClosed()
            ):
                pass
            case _:
                return False
        self.ledger.take(effect)
        return True

    def _said(self, effect: effects.Effect) -> None:
        """What somebody is to be told."""
        match effect:
            case effects.RequestEnded(reason=reason):
                self.metrics.requests.ended(reason)
            case effects.Observed(metric=metric, value=value):
                self.metrics.observed(metric, value)
            case effects.RunDelayed(delay_s=delay_s, cause=cause):
                self.metrics.delayed(delay_s, cause)
            case effects.KubeEvent():
                self.events.tell(effect)
            case effects.Log(level=level, event=event, fields=fields):
                log(event, level=level, **fields)
            case effects.Answer(ask=ask, value=value):
                assert isinstance(ask, asyncio.Future)
                if not ask.done():
                    ask.set_result(value)


def _namespace(key: str) -> str:
    return key.partition("/")[0]
