-- Only who writes alone changes these rows, so they can be named by their place (ctid).

-- name: some_schedules
SELECT id, uid, key FROM {schema}.schedule WHERE id > $1 ORDER BY id LIMIT $2

-- name: schedules_numbered
SELECT id, uid, key FROM {schema}.schedule WHERE id = ANY ($1::integer[])

-- name: drop_old_runs
WITH bound AS MATERIALIZED (
  SELECT wanted.id, oldest.due, oldest.kind
  FROM unnest($1::integer[]) AS wanted (id)
  LEFT JOIN LATERAL (
    SELECT r.due, r.kind
    FROM {schema}.run r
    WHERE r.schedule = wanted.id AND r.kind = 's'
    ORDER BY r.due DESC, r.kind DESC
    OFFSET $2 LIMIT 1) AS oldest ON true
),
old AS MATERIALIZED (
  SELECT found.ctid
  FROM bound b
  CROSS JOIN LATERAL (
    SELECT r.ctid
    FROM {schema}.run r
    WHERE r.schedule = b.id AND r.due < $3 AND r.recorded < $3
      AND r.state NOT IN ('scheduled', 'pending', 'running', 'retrying')
    UNION
    SELECT r.ctid
    FROM {schema}.run r
    WHERE r.schedule = b.id AND r.due <= b.due AND (r.due, r.kind) <= (b.due, b.kind)
      AND r.kind = 's'
      AND r.state NOT IN ('scheduled', 'pending', 'running', 'retrying')) AS found
  LIMIT $4
)
DELETE FROM {schema}.run
WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
RETURNING schedule, due, kind, state

-- name: size
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind = 'r'

-- name: count_runs
SELECT count(*) FROM (SELECT FROM {schema}.run LIMIT $1) AS counted

-- name: oldest_runs
SELECT r.schedule, r.due, r.kind
FROM {schema}.run r
WHERE r.state NOT IN ('scheduled', 'pending', 'running', 'retrying')
ORDER BY r.due, r.schedule, r.kind
LIMIT $1

-- name: drop_runs
DELETE FROM {schema}.run
WHERE ctid = ANY (ARRAY(
  SELECT r.ctid
  FROM unnest($1::integer[], $2::bigint[], $3::text[]) AS old (schedule, due, kind)
  CROSS JOIN LATERAL (
    SELECT one.ctid
    FROM {schema}.run one
    WHERE one.schedule = old.schedule AND one.due = old.due AND one.kind = old.kind
      AND one.state NOT IN ('scheduled', 'pending', 'running', 'retrying')
    OFFSET 0) AS r))
RETURNING schedule, due, kind, state

-- name: old_verdicts
SELECT p.*, s.uid, s.key
FROM {schema}.span p
JOIN {schema}.schedule s ON s.id = p.schedule
WHERE p.kind = 'verdict' AND p.recorded < $1 AND p.last < $1
LIMIT $2

-- name: old_days
SELECT p.*, s.uid, s.key
FROM {schema}.span p
JOIN {schema}.schedule s ON s.id = p.schedule
WHERE p.kind = 'day' AND p.last < $1
ORDER BY p.last
LIMIT $2

-- name: folded_spans
SELECT p.schedule, p.kind, p.first, p.reason, p.last, p.counts
FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS asked (schedule, kind, first)
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.span
  WHERE schedule = asked.schedule AND kind = asked.kind AND first = asked.first AND reason = ''
  OFFSET 0) AS p

-- name: old_minutes
SELECT * FROM {schema}.minute WHERE span_s < 3600 AND at < $1 ORDER BY at LIMIT $2

-- name: drop_minutes
DELETE FROM {schema}.minute
WHERE ctid = ANY (ARRAY(
  SELECT m.ctid
  FROM unnest($1::bigint[]) AS old (at)
  CROSS JOIN LATERAL (SELECT one.ctid FROM {schema}.minute one WHERE one.at = old.at OFFSET 0) AS m))

-- name: forgettable
SELECT s.id
FROM {schema}.schedule s
WHERE s.ended_at < $1
  AND NOT EXISTS (SELECT FROM {schema}.run r WHERE r.schedule = s.id)
  AND NOT EXISTS (SELECT FROM {schema}.span p WHERE p.schedule = s.id AND p.kind = 'verdict')
LIMIT $2

-- name: forget
WITH spans AS (DELETE FROM {schema}.span WHERE schedule = ANY ($1::integer[])),
     timings AS (DELETE FROM {schema}.timing WHERE schedule = ANY ($1::integer[])),
     hot AS (DELETE FROM {schema}.deferred WHERE schedule = ANY ($1::integer[]))
DELETE FROM {schema}.schedule WHERE id = ANY ($1::integer[])
