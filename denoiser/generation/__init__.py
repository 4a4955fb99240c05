"""Guides inside other people's `generate()`: logits processors for `transformers`."""
