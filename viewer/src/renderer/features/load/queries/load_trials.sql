-- Trials of a run that sent UDP at a rate asked for, with what each gave. Warm-ups are none.
SELECT
    t.trial_id, t.block, t.repetition, t.overlay, t.mode, t.encrypted,
    t.placement, t.client_node, t.server_node, t.direction, t.benchmark, t.tool,
    json_extract(t.parameters, '$.streams') AS streams,
    CAST(json_extract(t.parameters, '$.datagram') AS TEXT) AS datagram,
    json_extract(t.parameters, '$.offered') AS asked,
    t.status, t.reason,
    max(iif(s.metric = 'offered', s.value, NULL)) AS offered,
    max(iif(s.metric = 'goodput', s.value, NULL)) AS goodput,
    max(iif(s.metric = 'loss', s.value, NULL)) AS loss,
    max(iif(s.metric = 'jitter', s.value, NULL)) AS jitter
FROM trial AS t
LEFT JOIN (
    SELECT trial_id, metric, value FROM trial_summary
    WHERE run_id = :run AND metric IN ('offered', 'goodput', 'loss', 'jitter')
) AS s ON s.trial_id = t.trial_id
WHERE t.run_id = :run AND t.status IN ('ok', 'failed', 'void') AND NOT t.warmup
  AND json_extract(t.parameters, '$.protocol') = 'udp'
  AND json_type(t.parameters, '$.offered') IN ('integer', 'real')
GROUP BY t.trial_id
ORDER BY t.trial_id
