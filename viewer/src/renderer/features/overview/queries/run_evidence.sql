-- How much evidence was taken, and how much of it held.
SELECT kind, count(*) AS taken, sum(ok) AS held
FROM evidence
WHERE run_id = :run
GROUP BY kind
ORDER BY kind
