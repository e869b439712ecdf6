"""A v4 table as clients of older versions know one."""
