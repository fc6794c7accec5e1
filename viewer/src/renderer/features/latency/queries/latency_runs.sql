-- Runs that measured latency, newest first.
SELECT run_id
FROM trial_summary
WHERE metric IN ('latency_rtt', 'latency_one_way', 'latency_transaction')
GROUP BY run_id
ORDER BY run_id DESC
