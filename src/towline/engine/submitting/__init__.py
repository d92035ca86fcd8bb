"""From a plan to exactly one job, with its secrets."""
