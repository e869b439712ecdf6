"""Spark's conditions as filters of ours, by which files are pruned."""
