-- One trial with all its facts; of outputs only how long they are, in bytes, as they may be large.
SELECT
    trial_id, run_id, block, position, repetition, warmup, overlay, mode, encrypted, overlay_version, overlay_mtu,
    underlay_mtu, placement, client_node, server_node, direction, benchmark, tool, tool_version, parameters,
    status, reason, started_at, duration, argv, exit_code,
    length(CAST(stdout AS BLOB)) AS stdout_length, length(CAST(stderr AS BLOB)) AS stderr_length,
    length(CAST(node_state AS BLOB)) AS node_state_length
FROM trial
WHERE trial_id = :trial
