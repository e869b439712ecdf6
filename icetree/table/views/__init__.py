"""Views: what a lake and its users do with them."""
