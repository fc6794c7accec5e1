"""What people write in YAML, as frozen records: clusters, inventories, overlays, profiles, suites.

Not here: the YAML machinery itself, which is core's, and whatever carries a specification out."""
