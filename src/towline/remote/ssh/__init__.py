"""The system's OpenSSH: one shared connection for each login host."""
