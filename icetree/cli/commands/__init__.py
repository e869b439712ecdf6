"""The commands, those of a kind in one file; `demo` and `sql` have folders of their own."""
