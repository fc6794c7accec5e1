-- Checks of the profile, what did not pass first.
SELECT check_id, recorded_at, name, client_node, server_node, expected, measured, tolerance, unit, verdict, reason
FROM profile_check
WHERE run_id = :run
ORDER BY CASE verdict WHEN 'fail' THEN 0 WHEN 'not-applicable' THEN 1 ELSE 2 END, check_id
LIMIT 500
