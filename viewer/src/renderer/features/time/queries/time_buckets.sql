-- How full the sender's bucket was, on tiers that have one. What is noted before a trial may be older than the filling that
-- it began with, which the count of fillings tells.
WITH sender AS (
    SELECT
        trial_id, node_state,
        '$."' || iif(direction = 'server-to-client', server_node, client_node) || '".' AS path
    FROM trial
    WHERE trial_id IN (SELECT value FROM json_each(:trials)) AND json_valid(node_state)
)
SELECT
    trial_id,
    json_extract(node_state, path || 'before.bucket.capacity') AS capacity,
    json_extract(node_state, path || 'before.bucket.sustained') AS sustained,
    iif(
        json_extract(node_state, path || 'after.bucket.resets') > json_extract(node_state, path || 'before.bucket.resets'),
        json_extract(node_state, path || 'before.bucket.capacity'),
        json_extract(node_state, path || 'before.bucket.level_now')
    ) AS before,
    json_extract(node_state, path || 'after.bucket.level_now') AS after
FROM sender
WHERE json_type(node_state, path || 'before.bucket') = 'object'
  AND typeof(json_extract(node_state, path || 'before.bucket.capacity')) IN ('integer', 'real')
  AND typeof(json_extract(node_state, path || 'before.bucket.sustained')) IN ('integer', 'real')
ORDER BY trial_id
