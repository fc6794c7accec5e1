-- What results:show prints of each run, row by row, so that nobody has to repeat its statistics. Python computes it
-- (overlaylab.comparison), once for each block; the view shows what may be claimed of it by now.

-- From what a run's rows were made: stale ones are known by it. Where a trial is withdrawn both go.
CREATE TABLE _comparison_made (
    run_id       TEXT PRIMARY KEY REFERENCES _run,
    made_by      INTEGER NOT NULL,  -- rises when the statistics, or their words, change
    made_at      TEXT NOT NULL,
    published    TEXT NOT NULL CHECK (length(published) = 64),  -- SHA-256 of db/published*.csv
    trials_done  INTEGER NOT NULL CHECK (trials_done >= 0),
    blocks_done  INTEGER NOT NULL CHECK (blocks_done >= 0),
    margin       REAL NOT NULL CHECK (margin > 0)
) STRICT;

CREATE TABLE _comparison (
    run_id               TEXT NOT NULL REFERENCES _comparison_made ON DELETE CASCADE,
    ordinal              INTEGER NOT NULL,  -- the order in which they are printed
    variant_id           INTEGER NOT NULL REFERENCES _variant,
    benchmark            TEXT NOT NULL,
    metric_id            INTEGER NOT NULL REFERENCES metric,
    placement            TEXT NOT NULL,
    direction            TEXT NOT NULL,
    client_node          TEXT NOT NULL,
    server_node          TEXT NOT NULL,
    place                TEXT,
    tools                TEXT NOT NULL CHECK (json_valid(tools)),
    step                 REAL,
    is_primary           INTEGER NOT NULL CHECK (is_primary IN (0, 1)),
    blocks               INTEGER NOT NULL CHECK (blocks >= 0),
    median               REAL,
    low                  REAL,
    high                 REAL,
    ratio_blocks         INTEGER NOT NULL CHECK (ratio_blocks >= 0),
    ratio                REAL,
    ratio_low            REAL,
    ratio_high           REAL,
    ratio_same_step      INTEGER CHECK (ratio_same_step IN (0, 1)),
    interval_low         REAL,
    interval_high        REAL,
    coverage             REAL,
    verdict              TEXT CHECK (verdict IN ('lower', 'higher', 'same', 'cannot tell')),
    verdict_words        TEXT,
    p                    REAL,
    verdict_alone        TEXT CHECK (verdict_alone IN ('lower', 'higher', 'same', 'cannot tell')),
    verdict_alone_words  TEXT,
    left_out             INTEGER NOT NULL CHECK (left_out >= 0),
    theory               REAL,
    published            TEXT NOT NULL CHECK (json_valid(published)),
    PRIMARY KEY (run_id, ordinal),
    CHECK ((median IS NULL) = (blocks = 0)),
    CHECK ((ratio IS NULL) = (ratio_blocks = 0)),
    CHECK ((verdict IS NULL) = (verdict_words IS NULL))
) STRICT, WITHOUT ROWID;

-- Looking early misleads: until the run is done, no interval and no verdict.
CREATE VIEW comparison AS
SELECT
    c.run_id, c.ordinal, v.overlay, v.mode, v.encrypted,
    c.benchmark, m.name AS metric, m.unit, m.better,
    c.placement, c.direction, c.client_node, c.server_node, c.place, c.tools, c.step, c.is_primary,
    iif(r.state = 'done', 0, 1) AS provisional, d.blocks_done,
    c.blocks, c.median, c.low, c.high,
    c.ratio_blocks, c.ratio, c.ratio_low, c.ratio_high, c.ratio_same_step,
    iif(r.state = 'done', c.interval_low, NULL) AS interval_low,
    iif(r.state = 'done', c.interval_high, NULL) AS interval_high,
    iif(r.state = 'done', c.coverage, NULL) AS coverage,
    iif(r.state = 'done', c.verdict, NULL) AS verdict,
    iif(r.state = 'done', c.verdict_words, NULL) AS verdict_words,
    iif(r.state = 'done', c.p, NULL) AS p,
    iif(r.state = 'done', c.verdict_alone, NULL) AS verdict_alone,
    iif(r.state = 'done', c.verdict_alone_words, NULL) AS verdict_alone_words,
    d.margin, c.left_out, c.theory, c.published, d.made_by
FROM _comparison AS c
JOIN _comparison_made AS d USING (run_id)
JOIN _run AS r USING (run_id)
JOIN _variant AS v USING (variant_id)
JOIN metric AS m USING (metric_id);
