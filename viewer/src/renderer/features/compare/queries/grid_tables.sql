-- What finished runs have ratios of: the primary ones first, then those that most runs have.
SELECT
    c.benchmark, c.metric, c.placement, c.direction, c.client_node, c.server_node,
    c.unit, c.better, max(c.is_primary) AS is_primary, count(DISTINCT c.run_id) AS runs
FROM comparison AS c
JOIN run AS r USING (run_id)
WHERE r.state = 'done' AND (c.overlay <> 'host' OR c.mode IS NOT NULL) AND c.ratio IS NOT NULL
GROUP BY c.benchmark, c.metric, c.placement, c.direction, c.client_node, c.server_node, c.unit, c.better
ORDER BY max(c.is_primary) DESC, count(DISTINCT c.run_id) DESC, min(c.ordinal)
