"""SQL statements: what Spark's parser understands, and what only we do."""
