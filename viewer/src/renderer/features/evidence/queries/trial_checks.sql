-- The newest check of each kind that was made before a trial began.
SELECT
    max(c.check_id) AS check_id, c.recorded_at, c.name, c.client_node, c.server_node, c.expected, c.measured,
    c.tolerance, c.unit, c.verdict, c.reason
FROM trial AS t
JOIN profile_check AS c ON c.run_id = t.run_id AND c.recorded_at <= t.started_at
WHERE t.trial_id = :trial
GROUP BY c.name, c.client_node, c.server_node
ORDER BY 1
LIMIT 200
