"""Data files in each of their formats: Parquet, ORC, Avro."""
