"""The Iceberg REST catalog over any catalog that icetree opens."""
