-- The evidence of one trial, and what was taken outside of trials of the same overlay and mode before it.
SELECT e.evidence_id, e.trial_id, e.recorded_at, e.node, e.kind, e.phase, e.ok, e.expected, e.observed, e.reason
FROM trial AS t
JOIN evidence AS e ON e.run_id = t.run_id AND e.trial_id = t.trial_id
WHERE t.trial_id = :trial
UNION ALL
SELECT * FROM (
    SELECT e.evidence_id, e.trial_id, e.recorded_at, e.node, e.kind, e.phase, e.ok, e.expected, e.observed, e.reason
    FROM trial AS t
    JOIN evidence AS e ON e.run_id = t.run_id AND e.trial_id IS NULL
        AND e.overlay = t.overlay AND e.mode IS t.mode AND e.encrypted = t.encrypted
        AND e.recorded_at <= t.started_at
    WHERE t.trial_id = :trial
    ORDER BY e.evidence_id DESC
    LIMIT 50
)
ORDER BY 7, 1
LIMIT 500
