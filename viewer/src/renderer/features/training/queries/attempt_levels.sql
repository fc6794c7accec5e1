-- Each measure on the healthy nodes, and in the newest passes: ratios as mean, all else as median. A pass takes half a
-- minute at most, so that the newest ones are not looked for among all.
WITH newest AS (
    SELECT max(t) AS t FROM attempt_value WHERE attempt_id = :attempt AND measure = 'answered'
),
passes AS (
    SELECT
        node, role, measure, unit, better, value, reason,
        iif(phase = 'healthy', 'healthy', 'now') AS level,
        rank() OVER (PARTITION BY node, measure ORDER BY t DESC) AS age
    FROM attempt_value
    WHERE attempt_id = :attempt AND (phase = 'healthy' OR t > (SELECT t FROM newest) - 60 * :passes)
)
SELECT
    p.node, p.role, p.measure, p.unit, p.better, m.description, p.level,
    iif(p.unit = 'ratio', avg(p.value), median(p.value)) AS value,
    count(*) AS n, count(p.value) AS measured, max(p.reason) AS reason
FROM passes AS p
JOIN measure AS m ON m.name = p.measure
WHERE p.level = 'healthy' OR p.age <= :passes
GROUP BY m.measure_id, p.role, p.node, p.level
ORDER BY m.measure_id, p.role, p.node, p.level
