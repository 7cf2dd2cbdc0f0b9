-- name: next_term
UPDATE meta SET term = max(term + 1, :at_least) RETURNING term

-- name: due
SELECT d.schedule, d.due, d.kind, d.due_at, d.priority, d.state, d.attempt, d.request, s.uid, s.key,
  s.ended_at IS NOT NULL OR EXISTS (
    SELECT 1 FROM run r
    WHERE r.schedule = d.schedule AND r.due = d.due AND r.kind = d.kind
      AND r.state IN ('succeeded', 'failed', 'skipped', 'missed', 'cancelled', 'lost')
  ) AS stale
FROM deferred d CROSS JOIN schedule s ON s.id = d.schedule
WHERE d.state IN ('scheduled', 'retrying') AND d.due_at <= :before
ORDER BY d.due_at, d.priority DESC, d.schedule, d.due, d.kind
LIMIT :limit

-- name: promote
UPDATE deferred SET state = 'pending', term = ?, process = ?
WHERE schedule = ? AND due = ? AND kind = ?

-- name: promoted
SELECT d.schedule, d.due, d.kind, d.attempt, s.uid
FROM deferred d JOIN schedule s ON s.id = d.schedule
WHERE d.state NOT IN ('scheduled', 'retrying')
  AND (d.term < :below_term OR (:process <> '' AND d.process = :process))

-- name: put_back
UPDATE deferred SET state = ?, term = NULL, process = NULL
WHERE schedule = ? AND due = ? AND kind = ?
