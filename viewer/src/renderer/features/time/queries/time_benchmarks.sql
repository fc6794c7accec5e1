-- What was measured in intervals, from the summaries: no sample is read.
SELECT
    t.benchmark, t.tool, t.placement, t.direction, t.client_node, t.server_node,
    count(DISTINCT t.trial_id) AS trials, sum(iif(s.basis = 'interval', s.n, 0)) AS samples,
    group_concat(DISTINCT iif(s.basis = 'whole', s.metric, NULL)) AS whole_only
FROM trial AS t
JOIN trial_summary AS s ON s.trial_id = t.trial_id
WHERE t.run_id = :run
GROUP BY t.benchmark, t.tool, t.placement, t.direction, t.client_node, t.server_node
HAVING samples > 0
ORDER BY min(t.trial_id)
