"""The project's own tools: benchmarks, chaos runs and the recorder of terminal sessions."""
