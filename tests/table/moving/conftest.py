"""Iceberg Java, started once for all tests here."""

from __future__ import annotations
