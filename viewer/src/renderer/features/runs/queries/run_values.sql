-- Every trial that holds of one table of a run, in the order of the table's variants.
SELECT t.trial_id, t.block, t.overlay, t.mode, t.encrypted, t.overlay_mtu, s.value, s.resolution
FROM comparison AS c
JOIN trial AS t
    ON t.run_id = c.run_id AND t.overlay = c.overlay AND t.mode IS c.mode AND t.encrypted = c.encrypted
    AND t.benchmark = c.benchmark AND t.placement = c.placement AND t.direction = c.direction
    AND t.client_node = c.client_node AND t.server_node = c.server_node AND NOT t.warmup
JOIN trial_summary AS s ON s.trial_id = t.trial_id AND s.metric = c.metric
WHERE c.run_id = :run AND c.benchmark = :benchmark AND c.metric = :metric AND c.place IS :place
ORDER BY c.ordinal, t.trial_id
