-- Attempts at drills: who tried what, what happened, and what the service was like meanwhile.
-- Nothing of a drill's cause is in here before the attempt has ended.

CREATE TABLE measure (
    measure_id   INTEGER PRIMARY KEY,  -- also the order in which they are shown
    name         TEXT NOT NULL UNIQUE,
    unit         TEXT NOT NULL CHECK (unit IN ('ratio', 's', 'bit/s')),
    better       TEXT NOT NULL CHECK (better IN ('higher', 'lower')),
    of           TEXT NOT NULL,  -- itself, or what it is the worst of: then it is of a window alone
    description  TEXT NOT NULL
) STRICT;

INSERT INTO measure (measure_id, name, unit, better, of, description) VALUES
    (10, 'answered', 'ratio', 'higher', 'answered', 'pings that were answered, of four in each cycle'),
    (20, 'rtt', 's', 'lower', 'rtt', 'round-trip time of those pings: their median in each cycle'),
    (30, 'connected', 'ratio', 'higher', 'connected', 'TCP connections to port 80 that were set up within 3 s'),
    (40, 'connect', 's', 'lower', 'connect', 'time to set one up'),
    (50, 'page', 'ratio', 'higher', 'page', 'small pages (GET /) that came whole within 3 s'),
    (60, 'fetched', 'ratio', 'higher', 'fetched', 'files of 1 MB (GET /1m) that came whole within the limit'),
    (70, 'goodput', 'bit/s', 'higher', 'goodput', 'bytes of such a file that came, as bits, over the time taken or the limit'),
    (80, 'resolved', 'ratio', 'higher', 'resolved', 'look-ups of web.service.internal that were answered within 6 s'),
    (90, 'resolve', 's', 'lower', 'resolve', 'time of such a look-up'),
    (100, 'rtt_worst', 's', 'lower', 'rtt', 'the longest rtt of a window'),
    (110, 'connect_worst', 's', 'lower', 'connect', 'the longest connect of a window'),
    (120, 'resolve_worst', 's', 'lower', 'resolve', 'the longest resolve of a window');

CREATE TABLE _attempt (
    attempt_id      TEXT PRIMARY KEY,  -- UTC of its ticket and a random tail: sorts by time
    state           TEXT NOT NULL CHECK (state IN ('running', 'repaired', 'given-up', 'abandoned')),
    drill           TEXT NOT NULL,
    drill_digest    TEXT NOT NULL CHECK (length(drill_digest) = 64),
    title           TEXT NOT NULL,
    level           INTEGER NOT NULL CHECK (level BETWEEN 1 AND 3),
    minutes         INTEGER NOT NULL CHECK (minutes > 0),
    gameday         TEXT,
    trainee         TEXT,
    started_at      TEXT NOT NULL,
    ended_at        TEXT,
    duration        REAL CHECK (duration >= 0),
    score           INTEGER CHECK (score BETWEEN 0 AND 100),
    cause           TEXT,
    machine         TEXT NOT NULL,
    provider        TEXT NOT NULL,
    accelerator     TEXT NOT NULL CHECK (accelerator IN ('kvm', 'tcg', 'shared-kernel', 'bare')),
    image           TEXT,
    cluster         TEXT NOT NULL,
    profile         TEXT NOT NULL,
    profile_digest  TEXT NOT NULL,
    variant_id      INTEGER NOT NULL REFERENCES _variant,
    role_digest     TEXT NOT NULL CHECK (length(role_digest) = 64),
    lab_version     TEXT,
    CHECK ((state = 'running') = (ended_at IS NULL)),
    CHECK ((state IN ('repaired', 'given-up')) = (duration IS NOT NULL)),
    CHECK ((state = 'repaired') = (score IS NOT NULL))
) STRICT;
CREATE INDEX _attempt_of_drill ON _attempt (drill);

CREATE TABLE _attempt_event (
    attempt_id  TEXT NOT NULL REFERENCES _attempt,
    ordinal     INTEGER NOT NULL CHECK (ordinal >= 0),
    t           REAL NOT NULL,
    at          TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('baseline', 'injected', 'shown', 'ticket', 'hint', 'check',
                                              'repaired', 'given-up', 'abandoned', 'solved-step')),
    detail      TEXT NOT NULL CHECK (json_valid(detail)),
    PRIMARY KEY (attempt_id, ordinal)
) STRICT, WITHOUT ROWID;

-- One row per pass of the prober: a value of each measure would be nine rows a second.
CREATE TABLE _attempt_cycle (
    attempt_id  TEXT NOT NULL REFERENCES _attempt,
    ordinal     INTEGER NOT NULL CHECK (ordinal >= 0),
    t           REAL NOT NULL,
    node        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('client', 'server')),
    phase       TEXT NOT NULL CHECK (phase IN ('healthy', 'broken', 'running', 'check')),
    answered    REAL CHECK (answered BETWEEN 0 AND 1),
    rtt         REAL CHECK (rtt >= 0),
    connected   REAL CHECK (connected BETWEEN 0 AND 1),
    connect     REAL CHECK (connect >= 0),
    page        REAL CHECK (page BETWEEN 0 AND 1),
    fetched     REAL CHECK (fetched BETWEEN 0 AND 1),
    goodput     REAL CHECK (goodput >= 0),
    resolved    REAL CHECK (resolved BETWEEN 0 AND 1),
    resolve     REAL CHECK (resolve >= 0),
    reasons     TEXT NOT NULL CHECK (json_valid(reasons)),  -- {measure: why it failed}
    PRIMARY KEY (attempt_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW attempt AS
SELECT
    a.attempt_id, a.state, a.drill, a.drill_digest, a.title, a.level, a.minutes, a.gameday, a.trainee,
    a.started_at, a.ended_at, a.duration, a.score,
    (SELECT count(*) FROM _attempt_event AS e WHERE e.attempt_id = a.attempt_id AND e.kind = 'hint') AS hints,
    (SELECT count(*) FROM _attempt_event AS e
     WHERE e.attempt_id = a.attempt_id AND e.kind = 'check' AND json_extract(e.detail, '$.passes') = 0)
        AS failed_checks,
    a.cause, a.machine, a.provider, a.accelerator, a.image, a.cluster, a.profile, a.profile_digest,
    v.overlay, v.mode, v.encrypted, a.role_digest, a.lab_version
FROM _attempt AS a
JOIN _variant AS v USING (variant_id);

CREATE VIEW attempt_event AS
SELECT attempt_id, ordinal, t, at, kind, detail
FROM _attempt_event;

CREATE VIEW attempt_value AS
SELECT
    c.attempt_id, c.ordinal, c.t, c.node, c.role, c.phase, m.name AS measure, m.unit, m.better,
    CASE m.name
        WHEN 'answered' THEN c.answered WHEN 'rtt' THEN c.rtt
        WHEN 'connected' THEN c.connected WHEN 'connect' THEN c.connect
        WHEN 'page' THEN c.page WHEN 'fetched' THEN c.fetched WHEN 'goodput' THEN c.goodput
        WHEN 'resolved' THEN c.resolved WHEN 'resolve' THEN c.resolve
    END AS value,
    json_extract(c.reasons, '$.' || m.name) AS reason
FROM _attempt_cycle AS c
JOIN measure AS m ON m.of = m.name;
