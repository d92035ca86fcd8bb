"""What this user's processes know, in one file: jobs, attempts, events, and what clusters said of themselves."""

from __future__ import annotations

from towline.engine.store.jobs import Store as Store
