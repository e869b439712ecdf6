"""Row-level statements: DELETE, UPDATE, MERGE."""
