"""The engine: Spark moves the data. The only room that imports pyspark."""
