-- A part of one output.
WITH output AS (
    SELECT CASE :output WHEN 'stdout' THEN stdout WHEN 'stderr' THEN stderr WHEN 'node_state' THEN node_state END AS text
    FROM trial
    WHERE trial_id = :trial
)
SELECT substr(text, :from + 1, :most) AS text, length(text) AS length FROM output
