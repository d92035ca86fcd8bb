"""Cluster profiles: what Towline has to know of a cluster to reach it and to fill in a job's defaults."""
