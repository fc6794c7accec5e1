-- What request-response tools and UDP at a fixed load measure, and a unit for rates that are no bits.

-- A CHECK is loosened as https://www.sqlite.org/lang_altertable.html#otheralter says: rows stay as they are. Renaming
-- or dropping the table instead would take the foreign keys that point at it along.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, '''bytes'', ''1'')', '''bytes'', ''1/s'', ''1'')')
WHERE type = 'table' AND name = 'metric';
PRAGMA writable_schema = RESET;

INSERT INTO metric (metric_id, name, unit, better, description) VALUES
    (15, 'transaction_rate', '1/s', 'higher', 'requests per second that were answered, one at a time'),
    (35, 'latency_transaction', 's', 'lower', 'a TCP connection set up, a request, its answer, and the end, as netperf TCP_CRR counts it'),
    (55, 'reordered', '1', 'lower', 'datagrams that arrived after a later one'),
    (57, 'duplicates', '1', 'lower', 'datagrams that arrived again'),
    (90, 'cpu_client', 'ratio', 'lower', 'share of the CPUs of the client''s node that was busy, as the tool saw it'),
    (91, 'cpu_server', 'ratio', 'lower', 'share of the CPUs of the server''s node that was busy, as the tool saw it');
