-- Runs with trials that sent UDP at a rate asked for, newest first.
SELECT run_id
FROM trial
WHERE status IN ('ok', 'failed', 'void') AND NOT warmup
  AND json_extract(parameters, '$.protocol') = 'udp' AND json_type(parameters, '$.offered') IN ('integer', 'real')
GROUP BY run_id
ORDER BY run_id DESC
