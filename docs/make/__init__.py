"""What makes the site of the documentation, and the parts of its pages that come from the code."""
