-- Versions as the tools and the overlays' own daemons said.
SELECT tool AS what, tool_version AS version, count(*) AS trials
FROM trial
WHERE run_id = :run AND tool_version IS NOT NULL
GROUP BY tool, tool_version
UNION ALL
SELECT overlay, overlay_version, count(*)
FROM trial
WHERE run_id = :run AND overlay_version IS NOT NULL
GROUP BY overlay, overlay_version
