-- One table of a run: every variant, the host first, and how many of its trials gave nothing.
WITH missing AS (
    SELECT overlay, mode, encrypted, sum(status = 'failed') AS failed, sum(status = 'void') AS void
    FROM trial
    WHERE run_id = :run AND status IN ('failed', 'void') AND NOT warmup
        AND benchmark = :benchmark AND placement = :placement AND direction = :direction
        AND client_node = :client_node AND server_node = :server_node
    GROUP BY overlay, mode, encrypted
)
SELECT
    c.overlay, c.mode, c.encrypted, c.unit, c.better, c.provisional, c.blocks_done,
    c.blocks, c.median, c.low, c.high,
    c.ratio_blocks, c.ratio, c.ratio_low, c.ratio_high, c.ratio_same_step,
    c.interval_low, c.interval_high, c.coverage, c.verdict, c.verdict_words, c.p, c.verdict_alone_words,
    c.margin, c.left_out, c.theory, c.published,
    coalesce(m.failed, 0) AS failed, coalesce(m.void, 0) AS void
FROM comparison AS c
LEFT JOIN missing AS m ON m.overlay = c.overlay AND m.mode IS c.mode AND m.encrypted = c.encrypted
WHERE c.run_id = :run AND c.metric = :metric
    AND c.benchmark = :benchmark AND c.placement = :placement AND c.direction = :direction
    AND c.client_node = :client_node AND c.server_node = :server_node
ORDER BY c.ordinal
