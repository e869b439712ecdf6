"""`CALL`: procedures by Iceberg's names."""
