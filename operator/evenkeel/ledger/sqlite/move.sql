-- name: count_schedule
SELECT count(*) FROM schedule

-- name: count_timing
SELECT count(*) FROM timing

-- name: count_run
SELECT count(*) FROM run

-- name: count_span
SELECT count(*) FROM span

-- name: count_deferred
SELECT count(*) FROM deferred

-- name: count_minute
SELECT count(*) FROM minute

-- name: export_schedule
SELECT id, uid, key, mark, ended_at, until, phase FROM schedule
WHERE id > :after_id ORDER BY id LIMIT :limit

-- name: export_timing
SELECT t.schedule AS id, s.uid, t.after, t.fields
FROM timing t CROSS JOIN schedule s ON s.id = t.schedule
WHERE (t.schedule, t.after) > (:after_id, :after_after)
ORDER BY t.schedule, t.after LIMIT :limit

-- name: export_run
SELECT r.schedule AS id, s.uid, r.kind, r.due, r.state, r.reason, r.attempt, r.job, r.taken_up,
  r.created, r.started, r.finished, r.exit_code, r.exit_reason, r.container, r.message,
  r.generation, r.template_hash, r.request, r.requested_by, r.attempts, r.recorded
FROM run r CROSS JOIN schedule s ON s.id = r.schedule
WHERE (r.schedule, r.due, r.kind) > (:after_id, :after_due, :after_kind)
ORDER BY r.schedule, r.due, r.kind LIMIT :limit

-- name: export_span
SELECT p.schedule AS id, s.uid, p.kind, p.kind AS span_kind, p.first,
  CASE WHEN p.last = (1 << 62) - 1 THEN NULL ELSE p.last + 1 END AS "end",
  p.counts, p.reason, p.recorded
FROM span p CROSS JOIN schedule s ON s.id = p.schedule
WHERE (p.schedule, p.kind, p.first, p.reason)
  > (:after_id, :after_span_kind, :after_first, :after_reason)
ORDER BY p.schedule, p.kind, p.first, p.reason LIMIT :limit

-- name: export_deferred
SELECT d.schedule AS id, s.uid, d.kind, d.due, d.due_at, d.priority, d.state, d.attempt, d.request,
  d.term, d.process
FROM deferred d CROSS JOIN schedule s ON s.id = d.schedule
WHERE (d.schedule, d.due, d.kind) > (:after_id, :after_due, :after_kind)
ORDER BY d.schedule, d.due, d.kind LIMIT :limit

-- name: export_minute
SELECT at, span_s, ended, lateness, load, score, active, index_runs FROM minute
WHERE at > :after_at ORDER BY at LIMIT :limit

-- name: restore_schedule
INSERT INTO schedule (uid, key, mark, ended_at, until, phase)
VALUES (:uid, :key, :mark, :ended_at, :until, :phase)
ON CONFLICT DO NOTHING

-- name: restore_timing
INSERT INTO timing (schedule, after, fields) VALUES (:schedule, :after, :fields)
ON CONFLICT DO NOTHING

-- name: restore_run
INSERT INTO run (schedule, due, kind, state, reason, attempt, job, taken_up, created, started,
  finished, exit_code, exit_reason, container, message, generation, template_hash, request,
  requested_by, attempts, recorded)
VALUES (:schedule, :due, :kind, :state, :reason, :attempt, :job, :taken_up, :created, :started,
  :finished, :exit_code, :exit_reason, :container, :message, :generation, :template_hash, :request,
  :requested_by, :attempts, :recorded)
ON CONFLICT DO NOTHING

-- name: restore_span
INSERT INTO span (schedule, kind, first, reason, last, counts, recorded)
VALUES (:schedule, :kind, :first, :reason, :last, :counts, :recorded)
ON CONFLICT DO NOTHING

-- name: restore_deferred
INSERT INTO deferred
  (schedule, due, kind, due_at, priority, state, attempt, request, term, process)
VALUES
  (:schedule, :due, :kind, :due_at, :priority, :state, :attempt, :request, :term, :process)
ON CONFLICT DO NOTHING

-- name: restore_minute
INSERT INTO minute (at, span_s, ended, lateness, load, score, active, index_runs)
VALUES (:at, :span_s, :ended, :lateness, :load, :score, :active, :index_runs)
ON CONFLICT DO NOTHING
