-- The trials of the same cell, in the order of the plan.
SELECT o.trial_id, o.block, o.repetition, o.status
FROM trial AS t
JOIN trial AS o ON o.run_id = t.run_id AND o.benchmark = t.benchmark AND o.overlay = t.overlay AND o.mode IS t.mode
    AND o.encrypted = t.encrypted AND o.placement = t.placement AND o.direction = t.direction
    AND o.client_node = t.client_node AND o.server_node = t.server_node
WHERE t.trial_id = :trial
ORDER BY o.trial_id
