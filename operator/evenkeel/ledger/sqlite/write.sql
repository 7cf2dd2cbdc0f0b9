-- name: meta
SELECT term, written_at, born, since FROM meta

-- name: take_over_term
UPDATE meta SET term = :term

-- name: note_written
UPDATE meta SET written_at = :at

-- name: schedule_id
SELECT id, key FROM schedule WHERE uid = :uid

-- name: add_schedule
INSERT INTO schedule (uid, key) VALUES (:uid, :key)

-- name: run
SELECT state, reason, attempt, job, taken_up, created, started, finished, exit_code, exit_reason,
  container, message, generation, template_hash, request, requested_by, attempts
FROM run WHERE schedule = ? AND due = ? AND kind = ?

-- name: add_run
INSERT INTO run (state, reason, attempt, job, taken_up, created, started, finished, exit_code,
  exit_reason, container, message, generation, template_hash, request, requested_by, attempts,
  recorded, schedule, due, kind)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: change_run
UPDATE run SET state = ?, reason = ?, attempt = ?, job = ?, taken_up = ?, created = ?, started = ?,
  finished = ?, exit_code = ?, exit_reason = ?, container = ?, message = ?, generation = ?,
  template_hash = ?, request = ?, requested_by = ?, attempts = ?, recorded = ?
WHERE schedule = ? AND due = ? AND kind = ?

-- name: is_folded
SELECT 1 FROM schedule
WHERE id = :schedule AND mark >= :last AND EXISTS (
  SELECT 1 FROM span
  WHERE span.schedule = :schedule AND span.last >= :last AND span.first <= :first
    AND span.kind IN ('day', 'month')
)

-- name: hot
SELECT due_at, priority, state, attempt, request, term, process
FROM deferred WHERE schedule = ? AND due = ? AND kind = ?

-- name: put_hot
INSERT OR REPLACE INTO deferred
  (schedule, due, kind, due_at, priority, state, attempt, request, term, process)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_hot
DELETE FROM deferred WHERE schedule = ? AND due = ? AND kind = ?

-- name: open_spans
SELECT first, reason FROM span WHERE schedule = :schedule AND kind = 'open' AND last = :open_last

-- name: touched_spans
SELECT kind, first, reason, last, counts FROM span
WHERE schedule = :schedule AND last >= :first AND first <= :last AND kind IN ('verdict', 'open')

-- name: put_span
INSERT OR REPLACE INTO span (schedule, kind, first, reason, last, counts, recorded)
VALUES (:schedule, :kind, :first, :reason, :last, :counts, :recorded)

-- name: drop_span
DELETE FROM span
WHERE schedule = :schedule AND kind = :kind AND first = :first AND reason = :reason

-- name: put_timing
INSERT OR REPLACE INTO timing (schedule, after, fields) VALUES (:schedule, :after, :fields)

-- name: set_mark
UPDATE schedule SET mark = :mark WHERE id = :schedule

-- name: has_ended
SELECT 1 FROM schedule WHERE id = :schedule AND ended_at IS NOT NULL

-- name: end_schedule
UPDATE schedule SET
  until = CASE WHEN ended_at IS NULL THEN :until ELSE until END,
  ended_at = coalesce(ended_at, :at),
  phase = CASE WHEN phase = '' THEN :phase ELSE phase END
WHERE id = :schedule

-- name: cancel_unfinished
UPDATE run SET state = 'cancelled', reason = :reason, finished = coalesce(finished, :at),
  recorded = :recorded
WHERE schedule = :schedule AND state IN ('scheduled', 'pending', 'running', 'retrying')

-- name: drop_hot_of_schedule
DELETE FROM deferred WHERE schedule = :schedule

-- name: put_minute
INSERT OR REPLACE INTO minute (at, span_s, ended, lateness, load, score, active, index_runs)
SELECT :at, :span_s, :ended, :lateness, :load, :score, :active, :index_runs
WHERE NOT EXISTS (SELECT 1 FROM minute WHERE at = :hour AND span_s <> :span_s)
