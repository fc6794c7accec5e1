-- What was measured of variants that something was published for on the same tier, newest run first.
SELECT
    c.run_id, r.created_at, r.profile, r.accelerator, r.machine, r.provider,
    c.overlay, c.mode, c.encrypted, c.benchmark, c.metric, c.unit, c.better, c.place, c.tools,
    c.provisional, c.ratio_blocks, c.ratio, c.interval_low, c.interval_high, c.coverage, c.theory, c.published
FROM comparison AS c
JOIN run AS r USING (run_id)
WHERE c.published <> '[]'
ORDER BY r.created_at DESC, c.run_id DESC, c.ordinal
LIMIT 2000
