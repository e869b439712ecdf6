"""What one snapshot changed, of this version and of older ones."""
