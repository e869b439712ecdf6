"""Properties of tables: their names, and what their values mean."""
