"""Attacks on icetree that go on for as long as one lets them."""
