-- name: lock_hot
SELECT d.*
FROM unnest($1::integer[], $2::bigint[], $3::text[]) AS asked (schedule, due, kind)
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.deferred
  WHERE schedule = asked.schedule AND due = asked.due AND kind = asked.kind
  FOR UPDATE) AS d

-- name: lock_hot_of
SELECT *
FROM {schema}.deferred
WHERE schedule = ANY ($1::integer[])
ORDER BY schedule, due, kind
FOR UPDATE

-- name: drop_hot
DELETE FROM {schema}.deferred d
USING unnest($1::integer[], $2::bigint[], $3::text[]) AS old (schedule, due, kind)
WHERE d.schedule = old.schedule AND d.due = old.due AND d.kind = old.kind

-- name: put_hot
INSERT INTO {schema}.deferred AS d
  (schedule, due, kind, due_at, priority, state, attempt, request, term, process)
SELECT *
FROM unnest($1::integer[], $2::bigint[], $3::text[], $4::double precision[], $5::bigint[],
  $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::text[])
ON CONFLICT (schedule, due, kind) DO UPDATE
SET due_at = excluded.due_at, priority = excluded.priority, state = excluded.state,
    attempt = excluded.attempt, request = excluded.request, term = excluded.term,
    process = excluded.process

-- name: promote_due
-- MATERIALIZED: joined into the UPDATE, the selection could run again and lock more than its limit.
WITH picked AS MATERIALIZED (
  SELECT schedule, due, kind, due_at, priority, attempt, request
  FROM {schema}.deferred
  WHERE state IN ('scheduled', 'retrying') AND due_at <= $1
  ORDER BY due_at, priority DESC, schedule, due, kind
  LIMIT $2
  FOR UPDATE SKIP LOCKED
),
judged AS MATERIALIZED (
  SELECT p.*, s.uid, s.key, s.ended_at IS NOT NULL OR r.ended IS NOT NULL AS stale
  FROM picked p
  JOIN {schema}.schedule s ON s.id = p.schedule
  LEFT JOIN LATERAL (
    SELECT true AS ended
    FROM {schema}.run
    WHERE schedule = p.schedule AND due = p.due AND kind = p.kind
      AND state NOT IN ('scheduled', 'pending', 'running', 'retrying')
    OFFSET 0) AS r ON true
),
dropped AS (
  DELETE FROM {schema}.deferred d
  USING judged j
  WHERE j.stale AND d.schedule = j.schedule AND d.due = j.due AND d.kind = j.kind
  RETURNING 1
),
promoted AS (
  UPDATE {schema}.deferred d
  SET state = 'pending', term = $3, process = $4
  FROM judged j
  WHERE NOT j.stale AND d.schedule = j.schedule AND d.due = j.due AND d.kind = j.kind
  RETURNING j.*
)
SELECT uid, key, due, kind, due_at, priority, attempt, request, schedule, false AS stale
FROM promoted
UNION ALL
SELECT '', '', 0, '', 0, 0, 0, '', 0, true
FROM dropped

-- name: requeue
UPDATE {schema}.deferred d
SET state = CASE WHEN d.attempt > 1 THEN 'retrying' ELSE 'scheduled' END,
    term = NULL, process = NULL
FROM {schema}.schedule s
WHERE s.id = d.schedule AND d.term IS NOT NULL
  AND (d.term < $1 OR ($2 <> '' AND d.process = $2))
  AND NOT EXISTS (
    SELECT FROM unnest($3::text[], $4::bigint[], $5::text[], $6::bigint[])
      AS launched (uid, due, kind, attempt)
    WHERE launched.uid = s.uid AND launched.due = d.due AND launched.kind = d.kind
      AND launched.attempt = d.attempt)

-- name: deferred
SELECT s.uid, s.key, d.due, d.kind, d.due_at, d.priority, d.state, d.attempt, d.request
FROM {schema}.deferred d
JOIN {schema}.schedule s ON s.id = d.schedule
ORDER BY d.due_at, d.priority DESC, d.schedule, d.due, d.kind
