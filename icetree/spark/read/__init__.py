"""Tables as DataFrames: plan, list, read, leave out what is deleted."""
