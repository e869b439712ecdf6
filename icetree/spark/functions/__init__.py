"""Iceberg's functions in SQL: `system.bucket(16, id)` and its like; `st_intersects`."""
