-- Samples of a few trials: of :whole as they are, of :sliced as min, median and max in :slices of the longest one's time.
WITH longest AS MATERIALIZED (
    SELECT max(t_start) / :slices AS slice FROM result WHERE trial_id IN (SELECT value FROM json_each(:sliced))
)
SELECT trial_id, metric, unit, t_start, t_end, value AS low, value AS middle, value AS high, 1 AS n
FROM result
WHERE trial_id IN (SELECT value FROM json_each(:whole)) AND t_start IS NOT NULL AND quantile IS NULL
UNION ALL
SELECT
    trial_id, metric, unit, min(t_start), max(t_end), min(value), median(value), max(value), count(*)
FROM result
WHERE trial_id IN (SELECT value FROM json_each(:sliced)) AND t_start IS NOT NULL AND quantile IS NULL
GROUP BY trial_id, metric, unit, CAST(t_start / (SELECT slice FROM longest) AS INTEGER)
ORDER BY trial_id, metric, t_start
