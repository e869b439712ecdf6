"""Edits of table metadata: each comes to updates, which `spec.apply` carries out."""
