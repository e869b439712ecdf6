"""What is sound: every rule of manifests, metadata, stats and views."""
