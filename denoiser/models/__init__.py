"""Adapters: one model family a file; nothing outside knows a family's quirks."""
