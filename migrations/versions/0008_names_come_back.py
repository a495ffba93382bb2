"""A name that comes back begins anew; check-in keys remember what came with them; doubled handles are noted."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE agents ADD COLUMN floor_id BIGINT DEFAULT '0' NOT NULL",
    "ALTER TABLE agents ADD COLUMN checkin_hash BYTEA",
    "ALTER TABLE agents ADD COLUMN resume_key TEXT",
    "ALTER TABLE agents ADD COLUMN resume_hash BYTEA",
    "ALTER TABLE agents ADD COLUMN doubled_at TIMESTAMP WITH TIME ZONE",
    """
    CREATE UNIQUE INDEX agents_resume_key ON agents (realm_id, box_id, resume_key)
     WHERE resume_key IS NOT NULL
    """,
)
COLUMNS = ("floor_id", "checkin_hash", "resume_key", "resume_hash", "doubled_at")


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for column in COLUMNS:
        op.execute(f"ALTER TABLE agents DROP COLUMN {column}")
