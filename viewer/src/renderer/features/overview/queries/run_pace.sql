-- How long a trial takes with all that comes before it, from the newest ones. A gap of half an hour is no pace but a
-- break: killed, and resumed later.
WITH begun AS (
    SELECT started_at, (julianday(started_at) - julianday(lag(started_at) OVER (ORDER BY started_at))) * 86400 AS seconds
    FROM trial
    WHERE run_id = :run AND started_at IS NOT NULL
    ORDER BY started_at DESC
    LIMIT 40
)
SELECT count(seconds) AS gaps, avg(seconds) AS seconds FROM begun WHERE seconds < 1800
