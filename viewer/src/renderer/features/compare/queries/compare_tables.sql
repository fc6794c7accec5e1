-- The tables of a run in the order of printing.
SELECT
    benchmark, metric, placement, direction, client_node, server_node,
    unit, better, place, tools, step, max(is_primary) AS is_primary,
    max((overlay <> 'host' OR mode IS NOT NULL) AND ratio_blocks > 0) AS compared
FROM comparison
WHERE run_id = :run
GROUP BY benchmark, metric, placement, direction, client_node, server_node, unit, better, place, tools, step
ORDER BY min(ordinal)
