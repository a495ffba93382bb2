"""Queues of durable subscribers on the nerve, and the messages in them."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE nerve_queues (
        realm_id INTEGER NOT NULL,
        queue_id BIGINT GENERATED ALWAYS AS IDENTITY,
        holder TEXT NOT NULL,
        consumer_id TEXT NOT NULL,
        producer TEXT NOT NULL,
        event TEXT NOT NULL,
        topic BOOLEAN NOT NULL,
        consumer TEXT NOT NULL,
        group_name TEXT,
        durable BOOLEAN NOT NULL,
        ack_seconds DOUBLE PRECISION,
        attempts SMALLINT NOT NULL,
        delay_seconds DOUBLE PRECISION NOT NULL,
        exponential BOOLEAN NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT nerve_queues_pkey PRIMARY KEY (realm_id, queue_id),
        CONSTRAINT nerve_queues_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT nerve_queues_key UNIQUE (realm_id, holder, consumer_id, producer, event, topic)
    )
    """,
    "CREATE INDEX nerve_queues_event_idx ON nerve_queues (realm_id, event)",
    """
    CREATE TABLE nerve_messages (
        realm_id INTEGER NOT NULL,
        message_id BIGINT GENERATED ALWAYS AS IDENTITY,
        queue_id BIGINT NOT NULL,
        envelope TEXT NOT NULL,
        size INTEGER NOT NULL,
        attempts SMALLINT DEFAULT '0' NOT NULL,
        timeouts SMALLINT DEFAULT '0' NOT NULL,
        sent_to TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        dead_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT nerve_messages_pkey PRIMARY KEY (realm_id, message_id),
        CONSTRAINT nerve_messages_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT nerve_messages_realm_id_queue_id_fkey FOREIGN KEY(realm_id, queue_id)
            REFERENCES nerve_queues (realm_id, queue_id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX nerve_messages_queue_idx ON nerve_messages (realm_id, queue_id, message_id)",
    "CREATE INDEX nerve_messages_expires_at_idx ON nerve_messages (expires_at)",
    "CREATE INDEX nerve_messages_dead_idx ON nerve_messages (realm_id, message_id) WHERE dead_at IS NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE nerve_messages")
    op.execute("DROP TABLE nerve_queues")
