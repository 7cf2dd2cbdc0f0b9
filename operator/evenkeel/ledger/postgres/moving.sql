-- name: newest_schedule
SELECT coalesce(max(id), 0) FROM {schema}.schedule

-- name: count_schedule
SELECT count(*) FROM {schema}.schedule WHERE id <= $1

-- name: count_timing
SELECT count(*) FROM {schema}.timing WHERE schedule <= $1

-- name: count_run
SELECT count(*) FROM {schema}.run WHERE schedule <= $1

-- name: count_span
SELECT count(*) FROM {schema}.span WHERE schedule <= $1

-- name: count_deferred
SELECT count(*) FROM {schema}.deferred WHERE schedule <= $1

-- name: count_minute
SELECT count(*) FROM {schema}.minute WHERE $1::integer IS NOT NULL

-- name: export_schedule
SELECT s.id AS schedule, s.*
FROM {schema}.schedule s
WHERE s.id > $1 AND s.id <= $2
ORDER BY s.id
LIMIT $3

-- name: export_timing
SELECT s.uid, t.*
FROM {schema}.timing t
JOIN {schema}.schedule s ON s.id = t.schedule
WHERE (t.schedule, t.after) > ($1, $2) AND t.schedule <= $3
ORDER BY t.schedule, t.after
LIMIT $4

-- name: export_run
SELECT s.uid, r.*
FROM {schema}.run r
JOIN {schema}.schedule s ON s.id = r.schedule
WHERE (r.schedule, r.due, r.kind) > ($1, $2, $3) AND r.schedule <= $4
ORDER BY r.schedule, r.due, r.kind
LIMIT $5

-- name: export_span
SELECT s.uid, p.*, nullif(p.last, 4611686018427387903) + 1 AS "end"
FROM {schema}.span p
JOIN {schema}.schedule s ON s.id = p.schedule
WHERE (p.schedule, p.kind, p.first, p.reason) > ($1, $2, $3, $4) AND p.schedule <= $5
ORDER BY p.schedule, p.kind, p.first, p.reason
LIMIT $6

-- name: export_deferred
SELECT s.uid, d.*
FROM {schema}.deferred d
JOIN {schema}.schedule s ON s.id = d.schedule
WHERE (d.schedule, d.due, d.kind) > ($1, $2, $3) AND d.schedule <= $4
ORDER BY d.schedule, d.due, d.kind
LIMIT $5

-- name: export_minute
SELECT m.*
FROM {schema}.minute m
WHERE m.at > $1 AND $2::integer IS NOT NULL
ORDER BY m.at
LIMIT $3

-- name: restore_schedule
INSERT INTO {schema}.schedule (uid, key, mark, ended_at, until, phase)
SELECT new.uid, new.key, new.mark, new.ended_at, new.until, new.phase
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
  WITH ORDINALITY AS new (uid, key, mark, ended_at, until, phase, place)
WHERE NOT EXISTS (SELECT FROM {schema}.schedule s WHERE s.uid = new.uid)
ORDER BY new.place
ON CONFLICT DO NOTHING

-- name: restore_timing
INSERT INTO {schema}.timing (schedule, after, fields)
SELECT s.id, new.after, new.fields
FROM unnest($1::text[], $2::bigint[], $3::text[]) AS new (uid, after, fields)
JOIN {schema}.schedule s ON s.uid = new.uid
ON CONFLICT DO NOTHING

-- name: restore_run
INSERT INTO {schema}.run (schedule, kind, due, state, reason, attempt, job, taken_up, created,
  started, finished, exit_code, exit_reason, container, message, generation, template_hash, request,
  requested_by, attempts, recorded)
SELECT s.id, new.kind, new.due, new.state, new.reason, new.attempt, new.job, new.taken_up,
  new.created, new.started, new.finished, new.exit_code, new.exit_reason, new.container,
  new.message, new.generation, new.template_hash, new.request,
  new.requested_by, new.attempts, new.recorded
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[],
  $7::text[], $8::double precision[], $9::double precision[], $10::bigint[], $11::bigint[],
  $12::bigint[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::text[], $18::text[],
  $19::text[], $20::text[], $21::double precision[])
  AS new (uid, kind, due, state, reason, attempt, job, taken_up, created, started, finished,
    exit_code, exit_reason, container, message, generation, template_hash, request,
    requested_by, attempts, recorded)
JOIN {schema}.schedule s ON s.uid = new.uid
ON CONFLICT DO NOTHING

-- name: restore_span
INSERT INTO {schema}.span (schedule, kind, first, last, counts, reason, recorded)
SELECT s.id, new.kind, new.first, coalesce(new."end" - 1, 4611686018427387903), new.counts,
  new.reason, new.recorded
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[],
  $7::double precision[]) AS new (uid, kind, first, "end", counts, reason, recorded)
JOIN {schema}.schedule s ON s.uid = new.uid
ON CONFLICT DO NOTHING

-- name: restore_deferred
INSERT INTO {schema}.deferred (schedule, kind, due, due_at, priority, state, attempt, request, term,
  process)
SELECT s.id, new.kind, new.due, new.due_at, new.priority, new.state, new.attempt, new.request,
  new.term, new.process
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::double precision[], $5::bigint[],
  $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::text[])
  AS new (uid, kind, due, due_at, priority, state, attempt, request, term, process)
JOIN {schema}.schedule s ON s.uid = new.uid
ON CONFLICT DO NOTHING

-- name: restore_minute
INSERT INTO {schema}.minute (at, span_s, ended, lateness, load, score, active, index_runs)
SELECT *
FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::bigint[],
  $6::double precision[], $7::bigint[], $8::bigint[])
ON CONFLICT DO NOTHING
