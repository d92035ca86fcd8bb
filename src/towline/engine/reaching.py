"""From a profile to the way to its login hosts."""

from __future__ import annotations
