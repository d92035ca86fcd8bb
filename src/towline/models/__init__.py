"""The values that all rooms speak in: frozen, validated, serialisable, without I/O."""
