"""A small Django application: writers, articles, labels, comments."""
