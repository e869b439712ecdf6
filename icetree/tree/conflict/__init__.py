"""What stands between a change and the head that it is to land on."""
