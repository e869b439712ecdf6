"""Tables that come to the lake, go back to an earlier format version, or are tried out."""
