-- What the prober measured in one attempt, or in its newest :last seconds, in so many slices of that time at most.
WITH newest AS (
    SELECT max(t) AS t FROM attempt_value WHERE attempt_id = :attempt AND measure = 'answered'
),
passes AS (
    SELECT v.t, v.node, v.role, v.phase, v.measure, v.unit, v.better, v.value, v.reason
    FROM attempt_value AS v
    WHERE v.attempt_id = :attempt AND v.t >= (SELECT t FROM newest) - :last
),
width AS (
    SELECT min(t) AS first, max(0.2, (max(t) - min(t)) / :slices) AS seconds FROM passes
)
SELECT
    p.node, p.role, p.phase, p.measure, p.unit, p.better, m.description,
    max(p.t) AS t, count(*) AS n, count(p.value) AS measured,
    min(p.value) AS low, iif(p.unit = 'ratio', avg(p.value), median(p.value)) AS middle, max(p.value) AS high,
    max(p.reason) AS reason
FROM passes AS p
CROSS JOIN width AS w
JOIN measure AS m ON m.name = p.measure
GROUP BY m.measure_id, p.role, p.node, p.phase, CAST((p.t - w.first) / w.seconds AS INTEGER)
ORDER BY m.measure_id, p.role, p.node, t
