"""Parquet files: a first look of our own, then pyarrow's reading."""
