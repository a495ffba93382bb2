"""The database's schema, step by step (alembic)."""
