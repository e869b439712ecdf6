"""The verbs: where pure code meets stores and catalogs."""
