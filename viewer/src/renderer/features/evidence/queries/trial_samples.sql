-- The samples of one trial, in short; those of a void one too.
SELECT
    x.metric, x.unit, x.quantile, x.t_start IS NULL AS whole, count(*) AS n,
    min(x.value) AS low, avg(x.value) AS mean, max(x.value) AS high, max(x.resolution) AS resolution
FROM result AS x
JOIN metric AS m ON m.name = x.metric
WHERE x.trial_id = :trial
GROUP BY x.metric, x.unit, x.quantile, x.t_start IS NULL
ORDER BY m.metric_id, whole DESC, x.quantile
