-- name: integrity
PRAGMA integrity_check(20)

-- name: orphans
SELECT 'timing', schedule, after FROM timing WHERE schedule NOT IN (SELECT id FROM schedule)
UNION ALL
SELECT 'run', schedule, due FROM run WHERE schedule NOT IN (SELECT id FROM schedule)
UNION ALL
SELECT 'range row', schedule, first FROM span WHERE schedule NOT IN (SELECT id FROM schedule)
UNION ALL
SELECT 'deferred run', schedule, due FROM deferred WHERE schedule NOT IN (SELECT id FROM schedule)
LIMIT :limit

-- name: bad_runs
SELECT s.key, r.kind, r.due, r.state FROM run r JOIN schedule s ON s.id = r.schedule
WHERE r.state NOT IN ('scheduled', 'pending', 'running', 'retrying', 'succeeded', 'failed',
    'skipped', 'missed', 'cancelled', 'lost')
  OR r.attempt < 1
  OR (r.kind <> 's' AND r.kind NOT GLOB 'q0[a-z2-7][a-z2-7][a-z2-7][a-z2-7][a-z2-7][a-z2-7]')
  OR (r.attempts <> '' AND NOT json_valid(r.attempts))
LIMIT :limit

-- name: bad_spans
SELECT s.key, p.kind, p.first FROM span p JOIN schedule s ON s.id = p.schedule
WHERE p.last < p.first
  OR p.kind NOT IN ('verdict', 'open', 'day', 'month')
  OR NOT json_valid(p.counts)
LIMIT :limit

-- name: overlaps
SELECT s.uid, s.key, p.kind, p.first, p.reason, p.last, p.counts
FROM span p JOIN schedule s ON s.id = p.schedule
WHERE p.kind = 'verdict' AND json_valid(p.counts)
ORDER BY p.schedule, p.kind, p.first

-- name: stale
SELECT s.key, d.kind, d.due FROM deferred d JOIN schedule s ON s.id = d.schedule
LEFT JOIN run r ON r.schedule = d.schedule AND r.due = d.due AND r.kind = d.kind
WHERE s.ended_at IS NOT NULL
  OR r.state IN ('succeeded', 'failed', 'skipped', 'missed', 'cancelled', 'lost')
LIMIT :limit

-- name: bad_deferred
SELECT s.key, d.kind, d.due, d.state FROM deferred d JOIN schedule s ON s.id = d.schedule
WHERE d.state NOT IN ('scheduled', 'retrying', 'pending')
LIMIT :limit
