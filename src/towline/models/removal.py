"""The kinds of things that lie below a root on a cluster and can be removed."""

from __future__ import annotations

KINDS = ("jobs", "code", "staged", "imports", "leftovers", "data", "logs")
"""Jobs with all that they made; snapshots of code; data that was brought from elsewhere for jobs; the records of jobs
that prepared something; what calls that were killed left half-made; data that users pushed; logs of jobs alone."""
USUAL = KINDS[:5]
"""What goes when nothing else is said: what people put there themselves is theirs."""
