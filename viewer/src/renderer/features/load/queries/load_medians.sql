-- What the run's tables say of the benchmarks that sent UDP at a rate asked for.
SELECT
    overlay, mode, encrypted, benchmark, metric, placement, client_node, server_node, direction,
    provisional, blocks, median, ratio_blocks, ratio, ratio_same_step, interval_low, interval_high, coverage, verdict_words
FROM comparison
WHERE run_id = :run AND metric IN ('offered', 'goodput', 'loss', 'jitter')
  AND benchmark IN (
      SELECT benchmark FROM trial
      WHERE run_id = :run AND json_extract(parameters, '$.protocol') = 'udp'
        AND json_type(parameters, '$.offered') IN ('integer', 'real'))
ORDER BY ordinal
