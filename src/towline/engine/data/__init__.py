"""Data from elsewhere: staged before a job starts, and results that go elsewhere."""
