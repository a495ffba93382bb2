"""Nerve tokens, one-use tickets, and realms that let anonymous listeners in."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE nerve_clients (
        realm_id INTEGER NOT NULL,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT nerve_clients_pkey PRIMARY KEY (realm_id, name),
        CONSTRAINT nerve_clients_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT nerve_clients_role_check CHECK (role IN ('consumer', 'producer', 'both'))
    )
    """,
    """
    CREATE TABLE nerve_tokens (
        realm_id INTEGER NOT NULL,
        token_id TEXT NOT NULL,
        name TEXT NOT NULL,
        slot SMALLINT NOT NULL,
        hash BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        revoked_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT nerve_tokens_pkey PRIMARY KEY (realm_id, token_id),
        CONSTRAINT nerve_tokens_hash_key UNIQUE (hash),
        CONSTRAINT nerve_tokens_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT nerve_tokens_realm_id_name_fkey FOREIGN KEY(realm_id, name)
            REFERENCES nerve_clients (realm_id, name) ON DELETE CASCADE,
        CONSTRAINT nerve_tokens_slot_check CHECK (slot IN (1, 2))
    )
    """,
    "CREATE UNIQUE INDEX nerve_tokens_slot_key ON nerve_tokens (realm_id, name, slot) WHERE revoked_at IS NULL",
    """
    CREATE TABLE nerve_tickets (
        realm_id INTEGER NOT NULL,
        hash BYTEA NOT NULL,
        token_id TEXT NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT nerve_tickets_pkey PRIMARY KEY (realm_id, hash),
        CONSTRAINT nerve_tickets_hash_key UNIQUE (hash),
        CONSTRAINT nerve_tickets_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT nerve_tickets_realm_id_token_id_fkey FOREIGN KEY(realm_id, token_id)
            REFERENCES tokens (realm_id, token_id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX nerve_tickets_realm_id_token_id_idx ON nerve_tickets (realm_id, token_id)",
    "ALTER TABLE realms ADD COLUMN anonymous_listeners BOOLEAN DEFAULT false NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("ALTER TABLE realms DROP COLUMN anonymous_listeners")
    for table in ("nerve_tickets", "nerve_tokens", "nerve_clients"):
        op.execute(f"DROP TABLE {table}")
