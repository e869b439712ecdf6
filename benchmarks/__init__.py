"""Benchmarks, one module each: `python -m benchmarks.core`. How to read them: docs/benchmarks.md."""
