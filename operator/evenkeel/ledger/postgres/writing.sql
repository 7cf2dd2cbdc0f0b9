-- Where a statement asks for many rows by their keys, it does so one by one: OFFSET 0 keeps the
-- planner from joining whole tables, which it would do by old statistics.

-- name: guard
SELECT term FROM {schema}.term FOR SHARE

-- name: begin_batch
-- Whoever has changed this row writes alone until its transaction ends.
WITH alone AS (
  UPDATE {schema}.meta SET value = $1 WHERE name = 'written_at' RETURNING name
)
SELECT t.term FROM alone, {schema}.term t FOR SHARE OF t

-- name: write_alone
SELECT FROM {schema}.meta WHERE name = 'written_at' FOR UPDATE

-- name: raise_term
UPDATE {schema}.term SET term = $1 WHERE term < $1

-- name: take_term
UPDATE {schema}.term SET term = greatest(term + 1, $1) RETURNING term

-- name: schedules_named
SELECT id, uid, key, mark, ended_at, until, phase,
       (SELECT max(last) FROM {schema}.span WHERE kind IN ('day', 'month')) AS folded_until
FROM {schema}.schedule
WHERE uid = ANY ($1::text[])

-- name: add_schedules
INSERT INTO {schema}.schedule (uid, key)
SELECT new.uid, new.key
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS new (uid, key, place)
ORDER BY new.place
ON CONFLICT (uid) DO NOTHING

-- name: update_schedules
UPDATE {schema}.schedule s
SET mark = new.mark, ended_at = new.ended_at, until = new.until, phase = new.phase
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
  AS new (id, mark, ended_at, until, phase)
WHERE s.id = new.id

-- name: put_timings
INSERT INTO {schema}.timing AS t (schedule, after, fields)
SELECT * FROM unnest($1::integer[], $2::bigint[], $3::text[])
ON CONFLICT (schedule, after) DO UPDATE SET fields = excluded.fields
WHERE t.fields <> excluded.fields

-- name: stored_runs
SELECT r.*
FROM unnest($1::integer[], $2::bigint[], $3::text[]) AS asked (schedule, due, kind)
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.run
  WHERE schedule = asked.schedule AND due = asked.due AND kind = asked.kind
  OFFSET 0) AS r

-- name: unfinished_runs
SELECT *
FROM {schema}.run
WHERE schedule = ANY ($1::integer[]) AND state IN ('scheduled', 'pending', 'running', 'retrying')

-- name: add_runs
INSERT INTO {schema}.run (schedule, due, kind, state, reason, attempt, job, taken_up, created,
  started, finished, exit_code, exit_reason, container, message, generation, template_hash, request,
  requested_by, attempts, recorded)
SELECT *
FROM unnest($1::integer[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[],
  $7::text[], $8::double precision[], $9::double precision[], $10::bigint[], $11::bigint[],
  $12::bigint[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::text[], $18::text[],
  $19::text[], $20::text[], $21::double precision[])

-- name: update_runs
UPDATE {schema}.run r
SET state = new.state, reason = new.reason, attempt = new.attempt, job = new.job,
    taken_up = new.taken_up, created = new.created, started = new.started,
    finished = new.finished, exit_code = new.exit_code, exit_reason = new.exit_reason,
    container = new.container, message = new.message, generation = new.generation,
    template_hash = new.template_hash, request = new.request,
    requested_by = new.requested_by, attempts = new.attempts, recorded = new.recorded
FROM unnest($1::integer[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[],
  $7::text[], $8::double precision[], $9::double precision[], $10::bigint[], $11::bigint[],
  $12::bigint[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::text[], $18::text[],
  $19::text[], $20::text[], $21::double precision[])
  AS new (schedule, due, kind, state, reason, attempt, job, taken_up, created, started, finished,
    exit_code, exit_reason, container, message, generation, template_hash, request,
    requested_by, attempts, recorded)
WHERE r.schedule = new.schedule AND r.due = new.due AND r.kind = new.kind

-- name: touched_spans
SELECT s.schedule, s.kind, s.first, s.reason, s.last, s.counts
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::boolean[])
  AS asked (schedule, first, last, all_kinds)
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.span
  WHERE schedule = asked.schedule AND last >= asked.first
  OFFSET 0) AS s
WHERE CASE
  WHEN asked.all_kinds THEN s.first <= asked.last OR s.kind = 'open'
  ELSE s.first <= asked.last AND s.kind IN ('day', 'month')
END

-- name: drop_spans
DELETE FROM {schema}.span
WHERE ctid = ANY (ARRAY(
  SELECT s.ctid
  FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::text[])
    AS old (schedule, kind, first, reason)
  CROSS JOIN LATERAL (
    SELECT p.ctid
    FROM {schema}.span p
    WHERE p.schedule = old.schedule AND p.kind = old.kind AND p.first = old.first
      AND p.reason = old.reason
    OFFSET 0) AS s))

-- name: put_spans
INSERT INTO {schema}.span AS s (schedule, kind, first, reason, last, counts, recorded)
SELECT *
FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[],
  $7::double precision[])
ON CONFLICT (schedule, kind, first, reason) DO UPDATE
SET last = excluded.last, counts = excluded.counts, recorded = excluded.recorded

-- name: put_minutes
INSERT INTO {schema}.minute AS m
  (at, span_s, ended, lateness, load, score, active, index_runs)
SELECT new.*
FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::bigint[],
  $6::double precision[], $7::bigint[], $8::bigint[])
  AS new (at, span_s, ended, lateness, load, score, active, index_runs)
WHERE NOT EXISTS (
  SELECT FROM {schema}.minute hour
  WHERE hour.at = new.at - mod(mod(new.at, 3600) + 3600, 3600) AND hour.span_s <> new.span_s)
ON CONFLICT (at) DO UPDATE
SET span_s = excluded.span_s, ended = excluded.ended, lateness = excluded.lateness,
    load = excluded.load, score = excluded.score, active = excluded.active,
    index_runs = excluded.index_runs
