-- What each run found of its tier: the newest check of each kind between two nodes, newest run first.
SELECT
    c.check_id, c.run_id, r.created_at, c.profile, r.suite, r.accelerator, r.machine, r.provider,
    c.name, c.client_node, c.server_node, c.expected, c.measured, c.tolerance, c.unit, c.verdict, c.reason, c.low, c.high
FROM profile_check AS c
JOIN run AS r USING (run_id)
WHERE c.check_id IN (SELECT max(check_id) FROM profile_check GROUP BY run_id, name, client_node, server_node)
ORDER BY r.created_at DESC, c.run_id DESC, c.check_id
LIMIT 5000
