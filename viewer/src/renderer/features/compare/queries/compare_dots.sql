-- Every repetition of one table of a run: trials that hold, without warm-ups, in the order of the plan.
SELECT t.trial_id, t.overlay, t.mode, t.encrypted, t.block, t.repetition, s.value
FROM trial AS t
JOIN trial_summary AS s ON s.trial_id = t.trial_id AND s.metric = :metric
WHERE t.run_id = :run AND t.status = 'ok' AND NOT t.warmup
    AND t.benchmark = :benchmark AND t.placement = :placement AND t.direction = :direction
    AND t.client_node = :client_node AND t.server_node = :server_node
ORDER BY t.trial_id
