"""The keys that wrap the keys of tables: who keeps them, and how a table uses them."""
