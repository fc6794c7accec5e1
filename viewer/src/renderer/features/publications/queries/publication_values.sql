-- What publications measured, and what clouds document, in the order of db/published.csv.
SELECT
    publication, cloud, instance, overlay, mode, overlay_version, overlay_mtu_bytes, tool, protocol,
    metric, statistic, repetition, value, unit, parameters, note
FROM published
LIMIT 10000
