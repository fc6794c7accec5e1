-- Tables of the results database. Names with a leading underscore are internal: read the public
-- views (0002_views.sql), which db/README.md documents. Values are in base units.
-- STRICT needs SQLite 3.37 (2021-11); json_valid(NULL) is 0 there, hence the IS NULL beside it.
-- Whoever applies a migration supplies the transaction.

PRAGMA application_id = 1869373794; -- "olab": a file of another program is told apart by it

CREATE TABLE migration (
    version     INTEGER PRIMARY KEY,
    sha256      TEXT NOT NULL CHECK (length(sha256) = 64),
    applied_at  TEXT NOT NULL
) STRICT;

-- What files of the checkout were loaded into tables, so that a changed file is loaded again.
CREATE TABLE _loaded (
    name       TEXT PRIMARY KEY,
    sha256     TEXT NOT NULL,
    loaded_at  TEXT NOT NULL
) STRICT;

CREATE TABLE metric (
    metric_id    INTEGER PRIMARY KEY,  -- also the order in which tables are shown
    name         TEXT NOT NULL UNIQUE,
    unit         TEXT NOT NULL CHECK (unit IN ('bit/s', 's', 'ratio', 'bytes', '1')),
    better       TEXT NOT NULL CHECK (better IN ('higher', 'lower')),
    description  TEXT NOT NULL
) STRICT;

INSERT INTO metric (metric_id, name, unit, better, description) VALUES
    (10, 'goodput', 'bit/s', 'higher', 'application bytes received per second, as bits'),
    (20, 'latency_one_way', 's', 'lower', 'half a request and its answer, as qperf tcp_lat and udp_lat count it'),
    (30, 'latency_rtt', 's', 'lower', 'a request and its answer, both ways'),
    (40, 'jitter', 's', 'lower', 'RFC 3550 interarrival jitter, as iperf prints it'),
    (50, 'loss', 'ratio', 'lower', 'datagrams that did not arrive, over those sent'),
    (60, 'offered', 'bit/s', 'higher', 'application bytes really sent per second, as bits: what the sender''s CPU managed'),
    (70, 'datagrams', '1', 'higher', 'datagrams sent'),
    (80, 'retransmits', '1', 'lower', 'TCP segments sent again, as the sender''s kernel counts them');

CREATE TABLE _variant (
    variant_id  INTEGER PRIMARY KEY,
    overlay     TEXT NOT NULL CHECK (overlay <> ''),
    mode        TEXT CHECK (mode <> ''),
    encrypted   INTEGER NOT NULL CHECK (encrypted IN (0, 1))
) STRICT;
-- Two NULLs are distinct to UNIQUE, two hosts are not to us.
CREATE UNIQUE INDEX _variant_once ON _variant (overlay, coalesce(mode, ''), encrypted);

CREATE TABLE _run (
    run_id          TEXT PRIMARY KEY,  -- UTC start and a random tail: sorts by time
    state           TEXT NOT NULL CHECK (state IN ('planned', 'running', 'interrupted', 'done', 'failed')),
    origin          TEXT NOT NULL CHECK (origin IN ('measured', 'imported')),
    created_at      TEXT NOT NULL,
    started_at      TEXT,
    ended_at        TEXT,
    machine         TEXT NOT NULL,
    provider        TEXT NOT NULL,
    accelerator     TEXT NOT NULL CHECK (accelerator IN ('kvm', 'tcg', 'shared-kernel', 'bare')),
    image           TEXT,
    cluster         TEXT NOT NULL,
    profile         TEXT NOT NULL,
    profile_digest  TEXT NOT NULL,
    stands_for      TEXT CHECK (stands_for IS NULL OR json_valid(stands_for)),
    suite           TEXT NOT NULL,
    suite_digest    TEXT NOT NULL,
    scale           REAL NOT NULL CHECK (scale > 0),
    seed            INTEGER NOT NULL,
    blocks          INTEGER NOT NULL CHECK (blocks > 0),
    role_digests    TEXT NOT NULL CHECK (json_valid(role_digests)),
    arguments       TEXT NOT NULL CHECK (json_valid(arguments))
) STRICT;

CREATE TABLE _run_variant (
    run_id      TEXT NOT NULL REFERENCES _run,
    ordinal     INTEGER NOT NULL,
    variant_id  INTEGER NOT NULL REFERENCES _variant,
    PRIMARY KEY (run_id, ordinal),
    UNIQUE (run_id, variant_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE _node (
    run_id   TEXT NOT NULL REFERENCES _run,
    name     TEXT NOT NULL,
    zone     TEXT,
    details  TEXT CHECK (details IS NULL OR json_valid(details)),
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE _trial (
    trial_id         INTEGER PRIMARY KEY,  -- ascends in the order of the plan
    run_id           TEXT NOT NULL REFERENCES _run,
    variant_id       INTEGER NOT NULL REFERENCES _variant,
    block            INTEGER NOT NULL CHECK (block >= 0),
    position         INTEGER NOT NULL CHECK (position >= 0),
    repetition       INTEGER NOT NULL CHECK (repetition >= 0),
    warmup           INTEGER NOT NULL CHECK (warmup IN (0, 1)),
    benchmark        TEXT NOT NULL,
    tool             TEXT NOT NULL,
    parameters       TEXT NOT NULL CHECK (json_valid(parameters)),
    placement        TEXT NOT NULL CHECK (placement IN ('remote', 'local')),
    client_node      TEXT NOT NULL,
    server_node      TEXT NOT NULL,
    direction        TEXT NOT NULL,
    status           TEXT NOT NULL DEFAULT 'planned'
                     CHECK (status IN ('planned', 'running', 'ok', 'failed', 'void')),
    reason           TEXT,
    started_at       TEXT,
    duration         REAL CHECK (duration >= 0),
    argv             TEXT CHECK (argv IS NULL OR json_valid(argv)),
    exit_code        INTEGER,
    tool_version     TEXT,
    overlay_version  TEXT,
    overlay_mtu      INTEGER CHECK (overlay_mtu > 0),
    underlay_mtu     INTEGER CHECK (underlay_mtu > 0),
    UNIQUE (run_id, block, position),
    FOREIGN KEY (run_id, client_node) REFERENCES _node,
    FOREIGN KEY (run_id, server_node) REFERENCES _node,
    CHECK ((status IN ('failed', 'void')) = (reason IS NOT NULL)),
    CHECK (status = 'planned' OR started_at IS NOT NULL)
) STRICT;

-- Raw output apart, so that a scan over trials does not read it.
CREATE TABLE _output (
    trial_id    INTEGER PRIMARY KEY REFERENCES _trial,
    stdout      TEXT NOT NULL,
    stderr      TEXT NOT NULL,
    node_state  TEXT NOT NULL CHECK (json_valid(node_state))
) STRICT;

CREATE TABLE _sample (
    trial_id    INTEGER NOT NULL REFERENCES _trial,
    ordinal     INTEGER NOT NULL,
    metric_id   INTEGER NOT NULL REFERENCES metric,
    quantile    REAL CHECK (quantile > 0 AND quantile < 1),
    t_start     REAL CHECK (t_start >= 0),
    t_end       REAL CHECK (t_end >= t_start),
    value       REAL NOT NULL,
    resolution  REAL CHECK (resolution > 0),
    PRIMARY KEY (trial_id, ordinal),
    CHECK ((t_start IS NULL) = (t_end IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE _trial_summary (
    trial_id    INTEGER NOT NULL REFERENCES _trial,
    metric_id   INTEGER NOT NULL REFERENCES metric,
    basis       TEXT NOT NULL CHECK (basis IN ('interval', 'whole')),
    n           INTEGER NOT NULL CHECK (n > 0),
    value       REAL NOT NULL,
    mean        REAL NOT NULL,
    min         REAL NOT NULL,
    p01         REAL NOT NULL,
    p05         REAL NOT NULL,
    p25         REAL NOT NULL,
    p50         REAL NOT NULL,
    p75         REAL NOT NULL,
    p95         REAL NOT NULL,
    p99         REAL NOT NULL,
    max         REAL NOT NULL,
    resolution  REAL,
    PRIMARY KEY (trial_id, metric_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE _histogram (
    trial_id   INTEGER NOT NULL REFERENCES _trial,
    metric_id  INTEGER NOT NULL REFERENCES metric,
    lower      REAL NOT NULL,
    upper      REAL NOT NULL CHECK (upper >= lower),
    n          INTEGER NOT NULL CHECK (n > 0),
    PRIMARY KEY (trial_id, metric_id, lower)
) STRICT, WITHOUT ROWID;

CREATE TABLE _evidence (
    evidence_id  INTEGER PRIMARY KEY,
    run_id       TEXT NOT NULL REFERENCES _run,
    trial_id     INTEGER REFERENCES _trial,
    variant_id   INTEGER NOT NULL REFERENCES _variant,
    recorded_at  TEXT NOT NULL,
    node         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    phase        TEXT NOT NULL,
    ok           INTEGER NOT NULL CHECK (ok IN (0, 1)),
    expected     TEXT NOT NULL CHECK (json_valid(expected)),
    observed     TEXT NOT NULL CHECK (json_valid(observed)),
    reason       TEXT
) STRICT;
CREATE INDEX _evidence_of_run ON _evidence (run_id, trial_id);

CREATE TABLE _profile_check (
    check_id        INTEGER PRIMARY KEY,
    run_id          TEXT NOT NULL REFERENCES _run,
    recorded_at     TEXT NOT NULL,
    after_trial_id  INTEGER REFERENCES _trial,
    name            TEXT NOT NULL,
    client_node     TEXT NOT NULL,
    server_node     TEXT NOT NULL,
    expected        REAL,
    measured        REAL,
    tolerance       REAL,
    unit            TEXT NOT NULL,
    verdict         TEXT NOT NULL CHECK (verdict IN ('pass', 'fail', 'not-applicable')),
    reason          TEXT
) STRICT;
CREATE INDEX _profile_check_of_run ON _profile_check (run_id);

-- db/published.csv as it stands; loaded again when the file changes.
CREATE TABLE _published (
    line               INTEGER PRIMARY KEY,
    publication        TEXT NOT NULL,
    cloud              TEXT NOT NULL,
    instance           TEXT,
    overlay            TEXT NOT NULL,
    mode               TEXT,
    overlay_version    TEXT,
    overlay_mtu_bytes  INTEGER,
    tool               TEXT,
    protocol           TEXT,
    metric             TEXT NOT NULL,
    statistic          TEXT NOT NULL,
    repetition         INTEGER,
    value              REAL NOT NULL,
    unit               TEXT NOT NULL,
    parameters         TEXT,
    note               TEXT
) STRICT;
