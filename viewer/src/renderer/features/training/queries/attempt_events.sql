-- What happened in one attempt. What could tell the cause is not read too early: while the attempt runs only what the
-- trainee was told, and of earlier attempts, while the same drill is at hand, only the ticket.
SELECT
    e.ordinal, e.t, e.at, e.kind,
    CASE
        WHEN e.kind = 'ticket' THEN json_remove(e.detail, '$.debrief', '$.topics', '$.references')
        WHEN EXISTS (
            SELECT 1 FROM attempt AS o
            WHERE o.state = 'running' AND o.drill = a.drill AND o.attempt_id <> a.attempt_id
        ) THEN '{}'
        WHEN a.state <> 'running' THEN e.detail
        WHEN e.kind IN ('hint', 'check') THEN json_remove(e.detail, '$.debrief', '$.topics', '$.references')
        ELSE '{}'
    END AS detail
FROM attempt_event AS e
JOIN attempt AS a USING (attempt_id)
WHERE e.attempt_id = :attempt
ORDER BY e.ordinal
