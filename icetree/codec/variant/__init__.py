"""Variants: values that tell their own type, in the binary encoding of Parquet's specification."""
