-- Requests by how long they took, for each trial of one tool.
SELECT h.trial_id, h.metric, h.lower, h.upper, h.n
FROM trial AS t
JOIN histogram AS h ON h.trial_id = t.trial_id AND h.metric IN ('latency_rtt', 'latency_one_way', 'latency_transaction')
WHERE t.run_id = :run AND t.status = 'ok' AND NOT t.warmup AND t.tool = :tool
ORDER BY h.trial_id, h.metric, h.lower
