-- A check that counts (datagrams lost) has an interval of what it measured: 95 %, NULL where there is none.

ALTER TABLE _profile_check ADD COLUMN low REAL;
ALTER TABLE _profile_check ADD COLUMN high REAL;

DROP VIEW profile_check;

CREATE VIEW profile_check AS
SELECT
    c.check_id, c.run_id, c.recorded_at, c.after_trial_id, r.profile, c.name, c.client_node, c.server_node,
    c.expected, c.measured, c.tolerance, c.unit, c.verdict, c.reason, c.low, c.high
FROM _profile_check AS c
JOIN _run AS r USING (run_id);
