"""What runs say: values, ratios, verdicts, what was published, two runs, several tiers.

Not here: tables and pages for people."""
