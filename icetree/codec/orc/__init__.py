"""ORC files: a first look at what they claim to hold."""
