"""`icetree demo`: a pipeline on Spark and its table's truth; or a small table and a few of its laws."""
