-- Trials that gave no result, by reason.
SELECT status, reason, overlay, mode, encrypted, benchmark, count(*) AS trials, min(trial_id) AS first_trial
FROM trial
WHERE run_id = :run AND status IN ('failed', 'void')
GROUP BY status, reason, overlay, mode, encrypted, benchmark
ORDER BY trials DESC, first_trial
LIMIT 200
