-- Trials of a run that measured latency, a row for each latency metric; those that gave none have one row without.
SELECT
    t.trial_id, t.block, t.repetition, t.overlay, t.mode, t.encrypted,
    t.placement, t.client_node, t.server_node, t.direction, t.benchmark, t.tool,
    json_extract(t.parameters, '$.test') AS test,
    json_extract(t.parameters, '$.protocol') AS protocol,
    coalesce(json_extract(t.parameters, '$.request'), json_extract(t.parameters, '$.message'),
             json_extract(t.parameters, '$.payload')) AS size,
    json_extract(t.parameters, '$.messages_per_second') AS messages_per_second,
    t.status, t.reason, s.metric, s.basis, s.n, s.value, s.p50, s.p99
FROM trial AS t
LEFT JOIN (
    SELECT trial_id, metric, basis, n, value, p50, p99 FROM trial_summary
    WHERE run_id = :run AND metric IN ('latency_rtt', 'latency_one_way', 'latency_transaction')
) AS s ON s.trial_id = t.trial_id
WHERE t.run_id = :run AND t.status IN ('ok', 'failed', 'void') AND NOT t.warmup
  AND (s.metric IS NOT NULL
       OR t.status <> 'ok' AND (t.tool IN ('netperf', 'sockperf', 'ping', 'connect')
                                OR t.tool = 'qperf' AND json_extract(t.parameters, '$.test') LIKE '%lat'))
ORDER BY t.trial_id, s.metric
