-- What is wrong with them.
SELECT publication, cloud, instance, overlay, mode, protocol, metric, flaw FROM published_flaw LIMIT 10000
