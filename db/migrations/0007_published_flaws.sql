-- What is wrong with published figures, and how exactly they are known: the files beside db/published.csv as they
-- stand, loaded again when one changes. Of a publication's columns, an empty one means all.

CREATE TABLE _published_flaw (
    line         INTEGER PRIMARY KEY,
    publication  TEXT NOT NULL,
    cloud        TEXT,
    instance     TEXT,
    overlay      TEXT,
    mode         TEXT,
    protocol     TEXT,
    metric       TEXT,
    flaw         TEXT NOT NULL
) STRICT;

CREATE TABLE _published_precision (
    line          INTEGER PRIMARY KEY,
    publication   TEXT NOT NULL,
    tool          TEXT NOT NULL,
    protocol      TEXT NOT NULL,
    metric        TEXT NOT NULL,
    printed_unit  TEXT NOT NULL,
    unit_size     REAL NOT NULL CHECK (unit_size > 0),
    digits        INTEGER NOT NULL CHECK (digits > 0),
    step          REAL,
    why           TEXT NOT NULL
) STRICT;

CREATE VIEW published_flaw AS
SELECT publication, cloud, instance, overlay, mode, protocol, metric, flaw
FROM _published_flaw
ORDER BY line;

CREATE VIEW published_precision AS
SELECT publication, tool, protocol, metric, printed_unit, unit_size, digits, step, why
FROM _published_precision
ORDER BY line;
