-- The trials of one benchmark that have intervals, metric by metric.
SELECT
    t.trial_id, t.block, t.repetition, t.warmup, t.overlay, t.mode, t.encrypted, s.metric, s.unit, s.n,
    json_extract(t.parameters, '$.omit') AS omit, t.duration
FROM trial AS t
JOIN trial_summary AS s ON s.trial_id = t.trial_id AND s.basis = 'interval'
JOIN metric AS m ON m.name = s.metric
WHERE t.run_id = :run AND t.benchmark = :benchmark AND t.placement = :placement AND t.direction = :direction
  AND t.client_node = :client AND t.server_node = :server
ORDER BY m.metric_id, t.block, t.repetition, t.trial_id
LIMIT 20000
