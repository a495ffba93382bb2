"""One-use invites, and how long each realm keeps its messages."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE invites (
        realm_id INTEGER NOT NULL,
        invite_id TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT invites_pkey PRIMARY KEY (realm_id, invite_id),
        CONSTRAINT invites_hash_key UNIQUE (hash),
        CONSTRAINT invites_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    "ALTER TABLE realms ADD COLUMN keep_days INTEGER",
    "ALTER TABLE realms ADD CONSTRAINT realms_keep_days_check CHECK (keep_days >= 1)",
    "INSERT INTO sweeps (name) VALUES ('retention')",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DELETE FROM sweeps WHERE name = 'retention'")
    op.execute("ALTER TABLE realms DROP COLUMN keep_days")
    op.execute("DROP TABLE invites")
