"""The record: what was said, who said it, who has read it. PostgreSQL is the truth."""
