-- name: schedule_of_key
SELECT id FROM schedule WHERE key = :key

-- name: schedules_of_namespace
SELECT id FROM schedule WHERE key >= :namespace || '/' AND key < :namespace || '0'

-- name: schedules_of_name
SELECT id FROM schedule WHERE substr(key, instr(key, '/') + 1) = :name

-- name: runs
SELECT r.schedule, s.uid, s.key, r.due, r.kind, r.state, r.reason, r.attempt, r.job, r.taken_up,
  r.created, r.started, r.finished, r.exit_code, r.exit_reason, r.container, r.message,
  r.generation, r.template_hash, r.request, r.requested_by, r.attempts, d.due_at, d.priority
FROM run r INDEXED BY {index}
CROSS JOIN schedule s ON s.id = r.schedule
LEFT JOIN deferred d ON d.schedule = r.schedule AND d.due = r.due AND d.kind = r.kind
WHERE {of_index}
  AND (r.due, r.schedule, r.kind) < (:at, :number, :name) AND r.due >= :since
  AND (:schedules IS NULL OR r.schedule IN (SELECT value FROM json_each(:schedules)))
  AND (:states IS NULL OR r.state IN (SELECT value FROM json_each(:states)))
  AND (:reasons IS NULL OR r.reason IN (SELECT value FROM json_each(:reasons)))
  AND (:kinds IS NULL OR r.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:request = '' OR (r.request = :request AND r.kind <> 's'))
ORDER BY r.due DESC, r.schedule DESC, r.kind DESC

-- name: runs_of_schedule
SELECT r.schedule, s.uid, s.key, r.due, r.kind, r.state, r.reason, r.attempt, r.job, r.taken_up,
  r.created, r.started, r.finished, r.exit_code, r.exit_reason, r.container, r.message,
  r.generation, r.template_hash, r.request, r.requested_by, r.attempts, d.due_at, d.priority
FROM schedule s
CROSS JOIN run r ON r.schedule = s.id
LEFT JOIN deferred d ON d.schedule = r.schedule AND d.due = r.due AND d.kind = r.kind
WHERE s.id = :schedule
  AND (r.due, r.kind) < (:at, :name) AND r.due >= :since
  AND (:states IS NULL OR r.state IN (SELECT value FROM json_each(:states)))
  AND (:reasons IS NULL OR r.reason IN (SELECT value FROM json_each(:reasons)))
  AND (:kinds IS NULL OR r.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:request = '' OR (r.request = :request AND r.kind <> 's'))
ORDER BY r.due DESC, r.kind DESC

-- name: spans
SELECT p.schedule, s.uid, s.key, p.kind, p.first, p.reason, p.last, p.counts
FROM span p INDEXED BY {index}
CROSS JOIN schedule s ON s.id = p.schedule
WHERE {of_index}
  AND (p.last, p.schedule, p.kind, p.reason, p.first) < (:at, :number, :kind, :reason, :first)
  AND p.last >= :since
  AND (:schedules IS NULL OR p.schedule IN (SELECT value FROM json_each(:schedules)))
  AND (:states IS NULL OR EXISTS (
    SELECT 1 FROM json_each(:states) wanted WHERE instr(p.counts, '"' || wanted.value || '"')
  ))
ORDER BY p.last DESC, p.schedule DESC, p.kind DESC, p.reason DESC, p.first DESC

-- name: spans_of_schedule
SELECT p.schedule, s.uid, s.key, p.kind, p.first, p.reason, p.last, p.counts
FROM schedule s
CROSS JOIN span p ON p.schedule = s.id
WHERE s.id = :schedule
  AND (p.last, p.kind, p.reason, p.first) < (:at, :kind, :reason, :first) AND p.last >= :since
  AND (:states IS NULL OR EXISTS (
    SELECT 1 FROM json_each(:states) wanted WHERE instr(p.counts, '"' || wanted.value || '"')
  ))
ORDER BY p.last DESC, p.kind DESC, p.reason DESC, p.first DESC

-- name: state
SELECT state FROM run
WHERE schedule = (SELECT id FROM schedule WHERE uid = ?) AND due = ? AND kind = ?

-- name: unfinished
SELECT due, kind FROM run
WHERE schedule = (SELECT id FROM schedule WHERE uid = :uid)
  AND state IN ('scheduled', 'pending', 'running', 'retrying')
ORDER BY due, kind

-- name: deferred
SELECT s.uid, s.key, d.due, d.kind, d.due_at, d.priority, d.state, d.attempt, d.request
FROM deferred d JOIN schedule s ON s.id = d.schedule
ORDER BY d.due_at, d.priority DESC, d.schedule, d.due, d.kind

-- name: schedules
SELECT s.uid, s.key, coalesce((SELECT min(after) FROM timing WHERE schedule = s.id), 0), s.mark,
  s.ended_at, s.until, s.phase
FROM schedule s
WHERE (s.key, s.uid) > (:key, :uid)
ORDER BY s.key, s.uid
LIMIT :limit

-- name: schedules_by_uid
SELECT s.uid, s.key, coalesce((SELECT min(after) FROM timing WHERE schedule = s.id), 0), s.mark,
  s.ended_at, s.until, s.phase
FROM schedule s
WHERE s.uid IN (SELECT value FROM json_each(:uids))
ORDER BY s.key, s.uid

-- name: timings
SELECT after, fields FROM timing WHERE schedule = (SELECT id FROM schedule WHERE uid = :uid)
ORDER BY after

-- name: book_spans
SELECT kind, first, reason, last, counts FROM span
WHERE schedule = (SELECT id FROM schedule WHERE uid = :uid) AND last >= :first AND first < :end
ORDER BY first, kind, reason

-- name: book_runs
SELECT due, state FROM run
WHERE schedule = (SELECT id FROM schedule WHERE uid = :uid) AND due >= :first AND due < :end
  AND kind = 's'
ORDER BY due

-- name: minutes
SELECT at, span_s, ended, lateness, load, score, active, index_runs FROM minute
WHERE at >= :first AND at < :end ORDER BY at

-- name: facts
SELECT m.born, m.since, m.written_at, m.term, (SELECT max(number) FROM migration),
  (page_count - freelist_count) * page_size
FROM meta m, pragma_page_count(), pragma_freelist_count(), pragma_page_size()
