"""Draws a snapshot's tree: one small model, then the terminal, Mermaid and SVG."""
