-- What the run says of its primary metric.
SELECT
    overlay, mode, encrypted, benchmark, metric, unit, place, provisional, blocks, median,
    ratio_blocks, ratio, ratio_low, ratio_high, ratio_same_step,
    interval_low, interval_high, coverage, verdict, verdict_words, verdict_alone_words, margin, left_out
FROM comparison
WHERE run_id = :run AND is_primary
ORDER BY ordinal
