"""Encrypted files: AES-GCM streams, and the key metadata that opens a file."""
