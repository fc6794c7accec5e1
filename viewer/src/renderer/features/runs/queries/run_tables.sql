-- What results:show prints of a run, table by table.
SELECT benchmark, metric, unit, better, place, max(is_primary) AS is_primary
FROM comparison
WHERE run_id = :run
GROUP BY benchmark, metric, unit, better, place
ORDER BY min(ordinal)
