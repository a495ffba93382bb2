"""Webhooks, and how far each has come in each of its agent's rooms."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE webhooks (
        realm_id INTEGER NOT NULL,
        webhook_id TEXT NOT NULL,
        agent_id BIGINT NOT NULL,
        url TEXT NOT NULL,
        secret TEXT NOT NULL,
        since_id BIGINT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        next_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        attempts INTEGER DEFAULT 0 NOT NULL,
        failing_since TIMESTAMP WITH TIME ZONE,
        failure TEXT,
        disabled_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT webhooks_pkey PRIMARY KEY (realm_id, webhook_id),
        CONSTRAINT webhooks_realm_id_agent_id_fkey FOREIGN KEY(realm_id, agent_id)
            REFERENCES agents (realm_id, agent_id),
        CONSTRAINT webhooks_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX webhooks_agent_idx ON webhooks (realm_id, agent_id)",
    """
    CREATE TABLE webhook_rooms (
        realm_id INTEGER NOT NULL,
        webhook_id TEXT NOT NULL,
        conv_id BIGINT NOT NULL,
        looked_id BIGINT NOT NULL,
        nudged_id BIGINT DEFAULT '0' NOT NULL,
        told_id BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT webhook_rooms_pkey PRIMARY KEY (realm_id, webhook_id, conv_id),
        CONSTRAINT webhook_rooms_realm_id_webhook_id_fkey FOREIGN KEY(realm_id, webhook_id)
            REFERENCES webhooks (realm_id, webhook_id) ON DELETE CASCADE,
        CONSTRAINT webhook_rooms_realm_id_conv_id_fkey FOREIGN KEY(realm_id, conv_id)
            REFERENCES conversations (realm_id, conv_id) ON DELETE CASCADE,
        CONSTRAINT webhook_rooms_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX webhook_rooms_waiting_idx ON webhook_rooms (realm_id, webhook_id, nudged_id)
     WHERE nudged_id > told_id
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE webhook_rooms")
    op.execute("DROP TABLE webhooks")
