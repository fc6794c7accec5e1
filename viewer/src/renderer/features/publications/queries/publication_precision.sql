-- How exactly each was printed.
SELECT publication, tool, protocol, metric, printed_unit, digits, why FROM published_precision LIMIT 10000
