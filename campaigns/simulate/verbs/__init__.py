"""What writers do."""
