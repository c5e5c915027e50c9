"""Connections to PostgreSQL: libpq in a pipeline, its values, errors and addresses."""
