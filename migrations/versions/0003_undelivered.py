"""What nobody took, and how far the sweep for it has come."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE undelivered (
        realm_id INTEGER NOT NULL,
        id BIGINT NOT NULL,
        reason TEXT NOT NULL,
        reported_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT undelivered_pkey PRIMARY KEY (realm_id, id),
        CONSTRAINT undelivered_realm_id_id_fkey FOREIGN KEY(realm_id, id)
            REFERENCES conv_messages (realm_id, id) ON DELETE CASCADE,
        CONSTRAINT undelivered_reason_check CHECK (reason IN ('expired', 'retired')),
        CONSTRAINT undelivered_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE sweeps (
        name TEXT NOT NULL,
        until TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT sweeps_pkey PRIMARY KEY (name)
    )
    """,
    "CREATE INDEX conv_messages_expires_at_idx ON conv_messages (expires_at) WHERE expires_at IS NOT NULL",
    "CREATE INDEX agents_retired_at_idx ON agents (retired_at) WHERE retired_at IS NOT NULL",
    "INSERT INTO sweeps (name) VALUES ('closing')",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP INDEX agents_retired_at_idx")
    op.execute("DROP INDEX conv_messages_expires_at_idx")
    op.execute("DROP TABLE sweeps")
    op.execute("DROP TABLE undelivered")
