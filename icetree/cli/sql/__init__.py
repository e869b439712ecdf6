"""`icetree sql`: statements on local Spark, from a shell, a pipe or the command line."""
