-- What the nodes' system was, and the digest of the node kit that they measured with; NULL for runs of before and for
-- imported ones.

ALTER TABLE _run ADD COLUMN system TEXT;
ALTER TABLE _run ADD COLUMN kit TEXT;

DROP VIEW result;

CREATE VIEW result AS
SELECT
    t.run_id, t.trial_id, t.started_at,
    r.origin, r.machine, r.provider, r.accelerator, r.image, r.cluster, r.profile, r.profile_digest,
    v.overlay, v.mode, v.encrypted, t.overlay_version, t.overlay_mtu, t.underlay_mtu,
    t.placement, t.client_node, t.server_node, c.zone AS client_zone, s.zone AS server_zone, t.direction,
    r.suite, r.suite_digest, r.scale, t.benchmark, t.tool, t.tool_version,
    json_extract(t.parameters, '$.streams') AS streams, t.parameters,
    t.block, t.repetition, t.warmup, t.status, t.reason,
    m.name AS metric, m.unit, m.better, x.quantile, x.t_start, x.t_end, x.value, x.resolution,
    r.lab_version, r.system, r.kit
FROM _trial AS t
JOIN _run AS r USING (run_id)
JOIN _variant AS v USING (variant_id)
JOIN _node AS c ON c.run_id = t.run_id AND c.name = t.client_node
JOIN _node AS s ON s.run_id = t.run_id AND s.name = t.server_node
LEFT JOIN _sample AS x USING (trial_id)
LEFT JOIN metric AS m USING (metric_id)
WHERE t.status IN ('ok', 'failed', 'void');

DROP VIEW run;

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
    r.role_digests, r.arguments, r.lab_version, r.system, r.kit
FROM _run AS r;
