-- Each variant in each tier, the host too: of runs that are alike, the newest finished one that has it. Never two runs in one
-- cell.
SELECT
    run_id, started_at, created_at, origin, machine, accelerator, system, profile, cloud, instance, suite, scale,
    overlay, mode, encrypted, better, blocks, median, low, high, host_median, ratio_blocks, ratio, ratio_low, ratio_high, ratio_same_step,
    interval_low, interval_high, coverage, verdict_words, theory, published
FROM (
    SELECT
        c.*, r.started_at, r.created_at, r.origin, r.machine, r.accelerator, r.system, r.profile, r.cloud, r.instance, r.suite, r.scale,
        row_number() OVER (
            PARTITION BY r.profile, r.accelerator, r.system, r.machine, r.origin, r.suite, r.scale, c.overlay, c.mode, c.encrypted
            ORDER BY r.created_at DESC, r.run_id DESC
        ) AS age,
        max(CASE WHEN c.overlay = 'host' AND c.mode IS NULL THEN c.median END) OVER (PARTITION BY c.run_id) AS host_median
    FROM comparison AS c
    JOIN run AS r USING (run_id)
    WHERE r.state = 'done' AND c.metric = :metric
        AND c.benchmark = :benchmark AND c.placement = :placement AND c.direction = :direction
        AND c.client_node = :client_node AND c.server_node = :server_node
)
WHERE age = 1
ORDER BY created_at, run_id, ordinal
