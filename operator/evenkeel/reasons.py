"""The words that a status, an Event, a metric and a log line use for causes: one list for each.

People filter and alert by these words, so each is a value of an enum here and stands in a table of
the documentation; a test compares the two.
"""

import enum


class Reason(enum.StrEnum):
    """Why a run waits, or why it ended as it did."""

    # why it waits
    TAKEN_UP = "taken_up"
    """Its instant has come or is near; nothing was sent yet."""
    LAUNCHING = "launching"
    """Its create is under way, or follows within seconds."""
    QUEUED = "queued"
    HELD = "held"
    UNANNOUNCED = "unannounced"
    """Held, because the status that must name the run before its create cannot be stored."""
    RETRYING = "retrying"

    # why it was skipped
    OVERLAP = "overlap"
    QUEUE_FULL = "queue_full"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    REJECTED = "rejected"
    CRONJOB = "cronjob"
    """A CronJob of the same name ran this due time."""

    # why it was missed
    DEADLINE = "deadline"
    NOT_IN_TIME = "not_in_time"
    SUPERSEDED = "superseded"
    CATCH_UP_LIMIT = "catch_up_limit"
    PAST = "past"

    # why it failed
    JOB_FAILED = "job_failed"
    NAME_TAKEN = "name_taken"
    REFUSED = "refused"
    POD_REFUSED = "pod_refused"
    UNSCHEDULABLE = "unschedulable"
    IMAGE = "image"
    PENDING = "pending"
    """No Pod of its Job started by pendingDeadlineSeconds, and Kubernetes does not say why."""

    # why it was cancelled
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    SCHEDULE_DELETED = "schedule_deleted"
    """Its schedule was deleted, and its Job with it. Only the ledger tells of it."""
    REQUEST_DELETED = "request_deleted"
    """Its request was deleted before its Job existed."""
    REQUEST_STOPPED = "request_stopped"
    """Its request has ended by stopAfterFailures before its Job existed."""

    # why it is lost
    JOB_DELETED = "job_deleted"
    OUTCOME_UNKNOWN = "outcome_unknown"


WHY_SKIPPED = frozenset(
    {
        Reason.OVERLAP,
        Reason.QUEUE_FULL,
        Reason.SUSPENDED,
        Reason.PAUSED,
        Reason.REJECTED,
        Reason.CRONJOB,
    }
)
WHY_MISSED = frozenset(
    {
        Reason.DEADLINE,
        Reason.NOT_IN_TIME,
        Reason.SUPERSEDED,
        Reason.CATCH_UP_LIMIT,
        Reason.PAST,
    }
)
"""The reasons by which skipped and missed runs are counted."""


class DelayCause(enum.StrEnum):
    """What first delayed the create of a run."""

    NONE = "none"
    """Nothing but the work of creating Jobs."""
    RESTART = "restart"
    """No operator looked at the due time: it was down, stood still, or did not know of it yet."""
    HELD = "held"
    """A create was held back, or the status that must announce it could not be stored."""
    QUEUE = "queue"
    """Another run of the schedule was active (`concurrencyPolicy: Queue`)."""
    REBALANCE = "rebalance"
    """A rebalance was being carried out at that time."""


class JobReason(str):
    """A word of Kubernetes: the reason that a Job's own condition gives."""

    __slots__ = ()


RunReason = Reason | JobReason


class ConditionType(enum.StrEnum):
    """The conditions of a ScheduledJob."""

    READY = "Ready"
    STALLED = "Stalled"
    """True where nothing but an edit helps; absent elsewhere."""
    SCHEDULE_ACCEPTED = "ScheduleAccepted"
    TEMPLATE_ACCEPTED = "TemplateAccepted"
    ACTIVE = "Active"
    DEGRADED = "Degraded"


class RequestCondition(enum.StrEnum):
    """The conditions of a RunRequest. At its end exactly one of Complete and Failed is True."""

    READY = "Ready"
    STALLED = "Stalled"
    """True where the spec is refused; absent elsewhere."""
    COMPLETE = "Complete"
    FAILED = "Failed"


class RequestReason(enum.StrEnum):
    """Why a condition of a RunRequest has its status."""

    # what it waits for (Ready is Unknown)
    PENDING = "Pending"
    """The operator has not looked at it yet. The CRD says so of a new request."""
    SCHEDULE_NOT_SEEN = "ScheduleNotSeen"
    """No such schedule is known yet."""
    SCHEDULE_NOT_READY = "ScheduleNotReady"
    """Its spec is not accepted, or its phase is not chosen yet."""
    TOO_MANY_REQUESTS = "TooManyRequests"
    """Of its namespace so many are unfinished."""
    LEDGER_AWAY = "LedgerAway"
    """Nobody can say now which due times have run."""

    # as it should be (Ready is True)
    ACCEPTED = "Accepted"

    # why it is refused (Ready is False, Stalled is True)
    INVALID = "Invalid"
    UNREADABLE = "Unreadable"
    UNKNOWN_PARAMETER = "UnknownParameter"
    VALUE_NOT_ALLOWED = "ValueNotAllowed"
    RANGE_NOT_OVER = "RangeNotOver"
    TOO_MANY_DUE_TIMES = "TooManyDueTimes"
    PAST_UNKNOWN = "PastUnknown"
    """It begins before the ledger does: which due times have run is not known."""

    # how it ended: Complete is True
    SUCCEEDED = "Succeeded"
    NOTHING_TO_DO = "NothingToDo"
    DRY_RUN = "DryRun"

    # how it ended: Failed is True
    RUNS_FAILED = "RunsFailed"
    RUNS_SKIPPED = "RunsSkipped"
    STOPPED_AFTER_FAILURES = "StoppedAfterFailures"
    SCHEDULE_GONE = "ScheduleGone"
    SCHEDULE_NOT_FOUND = "ScheduleNotFound"
    REFUSED = "Refused"
    PLAN_LOST = "PlanLost"
    """The due times of its range are others than when it was planned: time zone data changed, or
    its status was edited."""


HOW_REQUESTS_END = frozenset(
    {
        RequestReason.SUCCEEDED,
        RequestReason.NOTHING_TO_DO,
        RequestReason.DRY_RUN,
        RequestReason.RUNS_FAILED,
        RequestReason.RUNS_SKIPPED,
        RequestReason.STOPPED_AFTER_FAILURES,
        RequestReason.SCHEDULE_GONE,
        RequestReason.SCHEDULE_NOT_FOUND,
        RequestReason.REFUSED,
        RequestReason.PLAN_LOST,
    }
)
"""The reasons by which requests that have ended are counted."""


class ConditionReason(enum.StrEnum):
    """Why a condition has its status."""

    # as it should be
    PENDING = "Pending"
    """The operator has not looked at it yet. The CRD says so of a new schedule."""
    ACCEPTED = "Accepted"
    SCHEDULED = "Scheduled"
    AS_EXPECTED = "AsExpected"

    # the spec
    INVALID = "Invalid"
    INVALID_SCHEDULE = "InvalidSchedule"
    UNKNOWN_TIME_ZONE = "UnknownTimeZone"
    TOO_FREQUENT = "TooFrequent"
    NEVER_FIRES = "NeverFires"
    UNREADABLE = "Unreadable"
    NOT_ACCEPTED = "NotAccepted"

    # the template
    REFUSED = "Refused"
    POD_NAME_TOO_LONG = "PodNameTooLong"
    NOT_PROVEN = "NotProven"
    NO_ANSWER = "NoAnswer"

    # whether anything may start
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    ENDED = "Ended"

    # what keeps runs from being created
    NAME_TAKEN = "NameTaken"
    UNKNOWN_FIELD = "UnknownField"
    """The template has a field that the API server does not know."""
    DENIED_BY_ADMISSION = "DeniedByAdmission"
    QUOTA_EXCEEDED = "QuotaExceeded"
    FORBIDDEN = "Forbidden"
    UNAUTHORIZED = "Unauthorized"
    NAMESPACE_GONE = "NamespaceGone"
    CONFLICT = "Conflict"
    TOO_MANY_REQUESTS = "TooManyRequests"
    UNREACHABLE = "Unreachable"
    NOT_CREATED = "NotCreated"
    """The create got no answer, and the Job does not exist."""
    STATUS_NOT_WRITTEN = "StatusNotWritten"
    """The status that must name the run before its create is not stored."""
    NO_JOB_IN_ANSWER = "NoJobInAnswer"
    NO_WORD_OF_SERVER = "NoWordOfServer"
    SERVER_ERROR = "ServerError"
    VANISHED = "Vanished"
    CRONJOB = "CronJob"
    """The Job of that name belongs to a CronJob of the same name."""
    PODS_UNREADABLE = "PodsUnreadable"
    JOB_ALTERED = "JobAltered"
    """A Job was stored without what tells whose it is."""
    ENDS_NOT_SEEN = "EndsNotSeen"
    """The watch of Jobs has been told nothing for minutes."""

    # what keeps Pods from starting
    IMAGE_NOT_PULLED = "ImageNotPulled"
    UNSCHEDULABLE = "Unschedulable"
    POD_REFUSED = "PodRefused"
    POD_PENDING = "PodPending"
    """No Pod has started, and Kubernetes does not say why."""

    # defects of ours
    NEXT_NOT_LATER = "NextNotLater"
    INTERNAL_ERROR = "InternalError"


class EventReason(enum.StrEnum):
    """The reasons of Kubernetes Events on a ScheduledJob or a RunRequest. CronJob's own where
    CronJob has one with that meaning, so that what people built for CronJob goes on."""

    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SAW_COMPLETED_JOB = "SawCompletedJob"
    JOB_ALREADY_ACTIVE = "JobAlreadyActive"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    MISSING_JOB = "MissingJob"
    FAILED_CREATE = "FailedCreate"
    MISS_SCHEDULE = "MissSchedule"

    RUN_FAILED = "RunFailed"
    POD_NOT_STARTED = "PodNotStarted"
    RUN_SKIPPED = "RunSkipped"
    RUN_LOST = "RunLost"
    QUEUED = "Queued"
    REPLACED = "Replaced"
    RETRYING = "Retrying"
    PLACED = "Placed"
    MOVED = "Moved"
    PAUSED = "Paused"
    RESUMED = "Resumed"
    REFUSED = "Refused"
    TEMPLATE_REFUSED = "TemplateRefused"
    REQUESTED = "Requested"
    """On the schedule: a RunRequest asks for runs of it."""
    REQUEST_ENDED = "RequestEnded"
    """On the schedule: that RunRequest has ended."""
    ACCEPTED = "Accepted"
    """On a RunRequest, as are the next two."""
    COMPLETED = "Completed"
    FAILED = "Failed"
    JOB_ALTERED = "JobAltered"
    INTERNAL_ERROR = "InternalError"
