-- Every run, newest first, with how far it is.
SELECT
    run_id, state, origin, created_at, started_at, ended_at, machine, provider, accelerator, image, cluster,
    profile, profile_digest, cloud, instance, suite, suite_digest, scale, seed, blocks,
    trials_planned, trials_done, trials_ok, trials_failed, trials_void, variants, nodes, role_digests, arguments,
    lab_version,
    system,
    kit,
    CASE state WHEN 'running' THEN max(
        coalesce(started_at, created_at),
        coalesce((SELECT max(t.started_at) FROM trial AS t WHERE t.run_id = r.run_id), ''),
        coalesce((SELECT max(e.recorded_at) FROM evidence AS e WHERE e.run_id = r.run_id), ''),
        coalesce((SELECT max(c.recorded_at) FROM profile_check AS c WHERE c.run_id = r.run_id), '')
    ) END AS written_at
FROM run AS r
ORDER BY created_at DESC, run_id DESC
