-- The public views: what the viewer, results:* and anybody with a SQLite shell may rely on.
-- db/README.md documents every column; a test holds the two together.

-- Rises when a column goes, or changes its name, type, unit or meaning; a new last column does not raise it.
CREATE VIEW view_version AS SELECT 1 AS version;

CREATE VIEW result AS
SELECT
    t.run_id, t.trial_id, t.started_at,
    r.origin, r.machine, r.provider, r.accelerator, r.image, r.cluster, r.profile, r.profile_digest,
    v.overlay, v.mode, v.encrypted, t.overlay_version, t.overlay_mtu, t.underlay_mtu,
    t.placement, t.client_node, t.server_node, c.zone AS client_zone, s.zone AS server_zone, t.direction,
    r.suite, r.suite_digest, r.scale, t.benchmark, t.tool, t.tool_version,
    json_extract(t.parameters, '$.streams') AS streams, t.parameters,
    t.block, t.repetition, t.warmup, t.status, t.reason,
    m.name AS metric, m.unit, m.better, x.quantile, x.t_start, x.t_end, x.value, x.resolution
FROM _trial AS t
JOIN _run AS r USING (run_id)
JOIN _variant AS v USING (variant_id)
JOIN _node AS c ON c.run_id = t.run_id AND c.name = t.client_node
JOIN _node AS s ON s.run_id = t.run_id AND s.name = t.server_node
LEFT JOIN _sample AS x USING (trial_id)
LEFT JOIN metric AS m USING (metric_id)
WHERE t.status IN ('ok', 'failed', 'void');

CREATE VIEW run AS
SELECT
    r.run_id, r.state, r.origin, r.created_at, r.started_at, r.ended_at,
    r.machine, r.provider, r.accelerator, r.image, r.cluster, r.profile, r.profile_digest,
    json_extract(r.stands_for, '$.cloud') AS cloud, json_extract(r.stands_for, '$.instance') AS instance,
    r.suite, r.suite_digest, r.scale, r.seed, r.blocks,
    (SELECT count(*) FROM _trial AS t WHERE t.run_id = r.run_id) AS trials_planned,
    (SELECT count(*) FROM _trial AS t WHERE t.run_id = r.run_id AND t.status IN ('ok', 'failed', 'void'))
        AS trials_done,
    (SELECT count(*) FROM _trial AS t WHERE t.run_id = r.run_id AND t.status = 'ok') AS trials_ok,
    (SELECT count(*) FROM _trial AS t WHERE t.run_id = r.run_id AND t.status = 'failed') AS trials_failed,
    (SELECT count(*) FROM _trial AS t WHERE t.run_id = r.run_id AND t.status = 'void') AS trials_void,
    (SELECT json_group_array(json_object('overlay', v.overlay, 'mode', v.mode,
                                         'encrypted', json(iif(v.encrypted, 'true', 'false'))))
     FROM (SELECT * FROM _run_variant AS rv JOIN _variant USING (variant_id)
           WHERE rv.run_id = r.run_id ORDER BY rv.ordinal) AS v) AS variants,
    (SELECT json_group_object(n.name, json_object('zone', n.zone, 'details', json(n.details)))
     FROM _node AS n WHERE n.run_id = r.run_id) AS nodes,
    r.role_digests, r.arguments
FROM _run AS r;

CREATE VIEW trial AS
SELECT
    t.trial_id, t.run_id, t.block, t.position, t.repetition, t.warmup,
    v.overlay, v.mode, v.encrypted, t.overlay_version, t.overlay_mtu, t.underlay_mtu,
    t.placement, t.client_node, t.server_node, t.direction,
    t.benchmark, t.tool, t.tool_version, t.parameters,
    t.status, t.reason, t.started_at, t.duration, t.argv, t.exit_code, o.stdout, o.stderr, o.node_state
FROM _trial AS t
JOIN _variant AS v USING (variant_id)
LEFT JOIN _output AS o USING (trial_id);

CREATE VIEW evidence AS
SELECT
    e.evidence_id, e.run_id, e.trial_id, e.recorded_at, v.overlay, v.mode, v.encrypted,
    e.node, e.kind, e.phase, e.ok, e.expected, e.observed, e.reason
FROM _evidence AS e
JOIN _variant AS v USING (variant_id);

CREATE VIEW profile_check AS
SELECT
    c.check_id, c.run_id, c.recorded_at, c.after_trial_id, r.profile, c.name, c.client_node, c.server_node,
    c.expected, c.measured, c.tolerance, c.unit, c.verdict, c.reason
FROM _profile_check AS c
JOIN _run AS r USING (run_id);

CREATE VIEW published AS
SELECT
    publication, cloud, instance, overlay, mode, overlay_version, overlay_mtu_bytes, tool, protocol,
    metric, statistic, repetition, value, unit, parameters, note
FROM _published
ORDER BY line;

-- Trials that hold: a void or failed one has no distribution to be drawn by mistake.
CREATE VIEW trial_summary AS
SELECT
    t.run_id, t.trial_id, m.name AS metric, m.unit, m.better, s.basis, s.n, s.value, s.mean,
    s.min, s.p01, s.p05, s.p25, s.p50, s.p75, s.p95, s.p99, s.max, s.resolution
FROM _trial_summary AS s
JOIN _trial AS t USING (trial_id)
JOIN metric AS m USING (metric_id)
WHERE t.status = 'ok';

CREATE VIEW histogram AS
SELECT t.run_id, t.trial_id, m.name AS metric, m.unit, h.lower, h.upper, h.n
FROM _histogram AS h
JOIN _trial AS t USING (trial_id)
JOIN metric AS m USING (metric_id)
WHERE t.status = 'ok';
