-- What the list of trials can be filtered by.
SELECT status, overlay, mode, encrypted, benchmark, count(*) AS trials
FROM trial
WHERE run_id = :run
GROUP BY status, overlay, mode, encrypted, benchmark
ORDER BY min(trial_id)
