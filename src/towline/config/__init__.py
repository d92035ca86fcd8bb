"""Cluster profiles: files, environment and presets, with one declaration per setting."""
