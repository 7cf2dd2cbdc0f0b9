-- name: runs_by_age
SELECT r.schedule, r.due, r.kind, r.state, r.recorded
FROM run r INDEXED BY run_due
WHERE (r.due, r.schedule, r.kind) > (:due, :schedule, :kind) AND r.due < :before
ORDER BY r.due, r.schedule, r.kind
LIMIT :limit

-- name: schedules_after
SELECT id FROM schedule WHERE id > :schedule ORDER BY id LIMIT :limit

-- name: first_too_many
SELECT due, kind FROM run WHERE schedule = :schedule AND kind = 's'
ORDER BY due DESC, kind DESC
LIMIT 1 OFFSET :keep

-- name: runs_too_many
SELECT schedule, due, kind, state, recorded FROM run
WHERE schedule = :schedule AND (due, kind) > (:after_due, :after_kind)
  AND (due, kind) <= (:due, :kind) AND kind = 's'
ORDER BY due, kind
LIMIT :limit

-- name: drop_run
DELETE FROM run WHERE schedule = ? AND due = ? AND kind = ?

-- name: uid_and_key
SELECT uid, key FROM schedule WHERE id = :schedule

-- name: folded
SELECT kind, first, reason, last, counts FROM span
WHERE schedule = :schedule AND kind = :kind AND first = :first AND reason = :reason

-- name: old_spans
SELECT p.schedule, p.kind, p.first, p.reason, p.last, p.counts, p.recorded
FROM span p INDEXED BY span_kind
WHERE p.kind = :kind AND p.last < :before AND (p.last, p.schedule, p.first) > (:last, :schedule, :first)
ORDER BY p.last, p.schedule, p.first
LIMIT :limit

-- name: short_minutes
SELECT at, span_s, ended, lateness, load, score, active, index_runs FROM minute
WHERE span_s < 3600 AND at < :before
ORDER BY at
LIMIT :limit

-- name: drop_minutes
DELETE FROM minute WHERE span_s < 3600 AND at >= :first AND at < :end

-- name: used_bytes
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()

-- name: forgettable
SELECT id FROM schedule
WHERE ended_at < :before AND id > :schedule
  AND NOT EXISTS (SELECT 1 FROM run WHERE run.schedule = schedule.id)
  AND NOT EXISTS (SELECT 1 FROM span WHERE span.schedule = schedule.id AND span.kind = 'verdict')
ORDER BY id
LIMIT :limit

-- name: drop_spans_of_schedule
DELETE FROM span WHERE schedule = :schedule

-- name: drop_timings_of_schedule
DELETE FROM timing WHERE schedule = :schedule

-- name: drop_schedule
DELETE FROM schedule WHERE id = :schedule
