"""Evolution: schema, layout and properties edited, branches and tags moved."""
