"""PyIceberg's own integration tests of its REST catalog, run against `icetree serve`."""
