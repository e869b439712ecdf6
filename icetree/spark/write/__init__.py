"""DataFrames into tables: fit, arrange, write files, commit."""
