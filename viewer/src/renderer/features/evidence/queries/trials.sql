-- The trials of a run, those that gave no result first. Each filter may be null: all.
SELECT
    trial_id, block, repetition, warmup, overlay, mode, encrypted, benchmark, tool, placement,
    client_node, server_node, direction, status, reason, started_at, duration
FROM trial
WHERE run_id = :run
  AND (:status IS NULL OR status = :status)
  AND (:variant IS NULL OR json_array(overlay, mode, encrypted) = :variant)
  AND (:benchmark IS NULL OR benchmark = :benchmark)
ORDER BY CASE status WHEN 'failed' THEN 0 WHEN 'void' THEN 1 WHEN 'running' THEN 2 WHEN 'ok' THEN 3 ELSE 4 END, trial_id
LIMIT 500
