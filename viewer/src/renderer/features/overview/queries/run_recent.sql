-- The newest trials of a run, each with the first metric of its tool.
WITH newest AS (
    SELECT trial_id, status, reason, block, overlay, mode, encrypted, benchmark, warmup, started_at, duration
    FROM trial
    WHERE run_id = :run AND status <> 'planned'
    ORDER BY started_at DESC, trial_id DESC
    LIMIT 6
)
SELECT n.*, s.metric, s.unit, s.value, min(m.metric_id) AS first_metric
FROM newest AS n
LEFT JOIN (trial_summary AS s JOIN metric AS m ON m.name = s.metric) ON s.trial_id = n.trial_id
GROUP BY n.trial_id
ORDER BY n.started_at DESC, n.trial_id DESC
