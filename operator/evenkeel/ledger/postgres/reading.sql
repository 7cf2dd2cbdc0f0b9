-- name: schedule_ids
SELECT id
FROM {schema}.schedule
WHERE ($1 = '' OR (key >= $1 || '/' AND key < $1 || '0'))
  AND ($2 = '' OR substr(key, strpos(key, '/') + 1) = $2)

-- name: states
SELECT asked.uid, r.due, r.kind, r.state
FROM unnest($1::text[], $2::bigint[], $3::text[]) AS asked (uid, due, kind)
JOIN {schema}.schedule s ON s.uid = asked.uid
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.run
  WHERE schedule = s.id AND due = asked.due AND kind = asked.kind
  OFFSET 0) AS r

-- name: unfinished
SELECT r.due, r.kind
FROM {schema}.run r
WHERE r.schedule = (SELECT id FROM {schema}.schedule WHERE uid = $1)
  AND r.state IN ('scheduled', 'pending', 'running', 'retrying')
ORDER BY r.due, r.kind

-- name: schedules
SELECT s.id, s.uid, s.key, s.mark, s.ended_at, s.until, s.phase,
       coalesce((SELECT min(t.after) FROM {schema}.timing t WHERE t.schedule = s.id), 0) AS since
FROM {schema}.schedule s
WHERE (s.key, s.uid) > ($1, $2)
ORDER BY s.key, s.uid
LIMIT $3

-- name: schedules_of
SELECT s.id, s.uid, s.key, s.mark, s.ended_at, s.until, s.phase,
       coalesce((SELECT min(t.after) FROM {schema}.timing t WHERE t.schedule = s.id), 0) AS since
FROM {schema}.schedule s
WHERE (s.key, s.uid) > ($1, $2) AND s.uid = ANY ($4::text[])
ORDER BY s.key, s.uid
LIMIT $3

-- name: timings
SELECT schedule, after, fields
FROM {schema}.timing
WHERE schedule = ANY ($1::integer[])
ORDER BY schedule, after

-- name: book_spans
SELECT s.schedule, s.kind, s.first, s.reason, s.last, s.counts
FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS asked (schedule, first, "end")
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.span
  WHERE schedule = asked.schedule AND last >= asked.first AND first < asked."end"
  OFFSET 0) AS s
ORDER BY s.schedule, s.first, s.kind, s.reason

-- name: book_runs
SELECT r.schedule, r.due, r.state
FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS asked (schedule, first, "end")
CROSS JOIN LATERAL (
  SELECT *
  FROM {schema}.run
  WHERE schedule = asked.schedule AND due >= asked.first AND due < asked."end" AND kind = 's'
  OFFSET 0) AS r
ORDER BY r.schedule, r.due

-- name: minutes
SELECT * FROM {schema}.minute WHERE at >= $1 AND at < $2 ORDER BY at

-- name: facts
SELECT
  (SELECT value FROM {schema}.meta WHERE name = 'born') AS born,
  (SELECT value::double precision FROM {schema}.meta WHERE name = 'since') AS since,
  (SELECT value::double precision FROM {schema}.meta WHERE name = 'written_at') AS written_at,
  (SELECT term FROM {schema}.term) AS term,
  (SELECT max(number) FROM {schema}.migration) AS migration,
  (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
   FROM pg_class c
   WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
     AND c.relkind = 'r') AS bytes

-- name: check_deferred
SELECT s.uid, d.due, d.kind
FROM {schema}.deferred d
JOIN {schema}.schedule s ON s.id = d.schedule
LEFT JOIN {schema}.run r ON r.schedule = d.schedule AND r.due = d.due AND r.kind = d.kind
WHERE s.ended_at IS NOT NULL
   OR r.state NOT IN ('scheduled', 'pending', 'running', 'retrying')
ORDER BY s.uid, d.due, d.kind
LIMIT 100

-- name: check_ranges
SELECT s.key, p.first
FROM {schema}.span p
JOIN {schema}.schedule s ON s.id = p.schedule
WHERE p.last < p.first
ORDER BY s.key, p.first
LIMIT 100

-- name: check_overlaps
-- Each range row with the one before it, of what may not overlap: verdicts, and unrecorded rows.
SELECT key, first, before
FROM (
  SELECT s.key, p.first,
         lag(p.first) OVER chain AS before,
         max(p.last) OVER (chain ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
  FROM {schema}.span p
  JOIN {schema}.schedule s ON s.id = p.schedule
  WHERE p.kind = 'verdict'
  WINDOW chain AS (
    PARTITION BY p.schedule, p.counts LIKE '{"unrecorded":%' AND p.counts NOT LIKE '%,%'
    ORDER BY p.first, p.last)
) AS ranges
WHERE first <= reached
ORDER BY key, first
LIMIT 100

-- name: check_orphans
SELECT 'run' AS rows, count(*) FROM {schema}.run r
WHERE NOT EXISTS (SELECT FROM {schema}.schedule s WHERE s.id = r.schedule)
UNION ALL
SELECT 'range', count(*) FROM {schema}.span p
WHERE NOT EXISTS (SELECT FROM {schema}.schedule s WHERE s.id = p.schedule)
UNION ALL
SELECT 'timing', count(*) FROM {schema}.timing t
WHERE NOT EXISTS (SELECT FROM {schema}.schedule s WHERE s.id = t.schedule)
UNION ALL
SELECT 'deferred', count(*) FROM {schema}.deferred d
WHERE NOT EXISTS (SELECT FROM {schema}.schedule s WHERE s.id = d.schedule)
