-- Every attempt, the newest first. hidden: the same drill is at hand in another attempt.
WITH told AS (
    SELECT
        a.*,
        EXISTS (
            SELECT 1 FROM attempt AS o
            WHERE o.state = 'running' AND o.drill = a.drill AND o.attempt_id <> a.attempt_id
        ) AS hidden
    FROM attempt AS a
)
SELECT
    t.attempt_id, t.state, t.drill, t.title, t.level, t.minutes, t.trainee, t.started_at, t.ended_at, t.duration,
    t.score, t.hints, t.failed_checks, iif(t.hidden, NULL, t.cause) AS cause, t.machine, t.provider, t.accelerator,
    t.image, t.cluster, t.profile, t.overlay, t.mode, t.encrypted, t.lab_version,
    CASE
        WHEN t.state = 'running'
            THEN (SELECT max(v.t) FROM attempt_value AS v WHERE v.attempt_id = t.attempt_id AND v.measure = 'answered')
    END AS last_t,
    t.hidden
FROM told AS t
ORDER BY t.started_at DESC, t.attempt_id DESC
