-- Percentiles that tools computed themselves. Trials of which every request was kept have these in their bins instead:
-- their samples are not to be scanned.
SELECT x.trial_id, x.metric, x.quantile, x.value
FROM trial_summary AS s
JOIN result AS x ON x.trial_id = s.trial_id AND x.metric = s.metric
WHERE s.run_id = :run AND s.metric IN ('latency_rtt', 'latency_one_way', 'latency_transaction') AND s.basis = 'whole'
  AND x.quantile IS NOT NULL AND NOT x.warmup
ORDER BY x.trial_id, x.metric, x.quantile
