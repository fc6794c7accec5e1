-- What trials cost: CPU time as nodes and their machines count it, packets, stolen time.

INSERT INTO metric (metric_id, name, unit, better, description) VALUES
    (100, 'cpu_per_gigabyte', 's', 'lower', 'CPU time of both nodes, all processes and softirq, as their kernels count it, per 10^9 application bytes received'),
    (101, 'cpu_per_transaction', 's', 'lower', 'the same per request and its answer'),
    (102, 'machine_cpu_per_gigabyte', 's', 'lower', 'CPU time that the machine spent on both nodes, as its hypervisor or control groups count it, per 10^9 application bytes received'),
    (103, 'machine_cpu_per_transaction', 's', 'lower', 'the same per request and its answer'),
    (110, 'packet_rate', '1/s', 'lower', 'packets that the sender''s underlay interface sent per second'),
    (120, 'steal', 'ratio', 'lower', 'share of a node''s CPU time that its hypervisor gave to others, the larger of both; NULL where it is not measured');
