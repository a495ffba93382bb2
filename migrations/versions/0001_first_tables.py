"""The first tables."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TYPE namespace AS RANGE (subtype = text, collation = "C")
    """,
    """
    CREATE TABLE audit_log (
        audit_id BIGINT GENERATED ALWAYS AS IDENTITY,
        realm TEXT,
        act TEXT NOT NULL,
        target TEXT NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT audit_log_pkey PRIMARY KEY (audit_id)
    )
    """,
    """
    CREATE TABLE realms (
        realm_id INTEGER GENERATED ALWAYS AS IDENTITY,
        name TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT realms_pkey PRIMARY KEY (realm_id),
        CONSTRAINT realms_name_key UNIQUE (name)
    )
    """,
    """
    CREATE TABLE agents (
        realm_id INTEGER NOT NULL,
        agent_id BIGINT GENERATED ALWAYS AS IDENTITY,
        handle TEXT NOT NULL,
        kind TEXT NOT NULL,
        box_id BIGINT,
        label TEXT,
        role TEXT,
        addresses TEXT[] NOT NULL,
        harness TEXT,
        cwd TEXT,
        title TEXT,
        checkin_key TEXT,
        state TEXT DEFAULT 'unknown' NOT NULL,
        state_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        last_seen TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        offline_since TIMESTAMP WITH TIME ZONE,
        wake_rung TEXT,
        wake_outcome TEXT,
        wake_reason TEXT,
        wake_at TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        retired_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT agents_pkey PRIMARY KEY (realm_id, agent_id),
        CONSTRAINT agents_realm_id_handle_key UNIQUE (realm_id, handle),
        CONSTRAINT agents_kind_check CHECK (kind IN ('session', 'box', 'person')),
        CONSTRAINT agents_box_check CHECK ((kind = 'person') = (box_id IS NULL)),
        CONSTRAINT agents_state_check CHECK (state IN ('starting', 'idle', 'busy', 'waiting', 'suspended', 'offline', 'unknown')),
        CONSTRAINT agents_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX agents_box_idx ON agents (realm_id, box_id)
    """,
    """
    CREATE UNIQUE INDEX agents_checkin_key ON agents (realm_id, box_id, checkin_key) WHERE checkin_key IS NOT NULL
    """,
    """
    CREATE TABLE conversations (
        realm_id INTEGER NOT NULL,
        conv_id BIGINT GENERATED ALWAYS AS IDENTITY,
        name TEXT NOT NULL,
        title TEXT,
        hidden BOOLEAN GENERATED ALWAYS AS (left(name, 1) = '@') STORED,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT conversations_pkey PRIMARY KEY (realm_id, conv_id),
        CONSTRAINT conversations_realm_id_name_key UNIQUE (realm_id, name),
        CONSTRAINT conversations_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE handle_counters (
        realm_id INTEGER NOT NULL,
        label TEXT NOT NULL,
        last_n BIGINT NOT NULL,
        CONSTRAINT handle_counters_pkey PRIMARY KEY (realm_id, label),
        CONSTRAINT handle_counters_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE names (
        realm_id INTEGER NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        span namespace GENERATED ALWAYS AS (CASE WHEN kind = 'role' THEN namespace(realm_id::text || '/' || name, realm_id::text || '/' || name, '[]') ELSE namespace(realm_id::text || '/' || name, realm_id::text || '/' || name || '.', '[)') END) STORED,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT names_pkey PRIMARY KEY (realm_id, name),
        CONSTRAINT names_kind_check CHECK (kind IN ('box', 'person', 'role')),
        CONSTRAINT names_span_excl EXCLUDE USING gist (span WITH &&),
        CONSTRAINT names_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE batches (
        realm_id INTEGER NOT NULL,
        batch_id BIGINT GENERATED ALWAYS AS IDENTITY,
        agent_id BIGINT NOT NULL,
        lease TEXT,
        poll_key TEXT,
        handed_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        fresh_until TIMESTAMP WITH TIME ZONE,
        committed_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT batches_pkey PRIMARY KEY (realm_id, batch_id),
        CONSTRAINT batches_realm_id_agent_id_fkey FOREIGN KEY(realm_id, agent_id) REFERENCES agents (realm_id, agent_id),
        CONSTRAINT batches_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT batches_realm_id_lease_key UNIQUE (realm_id, lease)
    )
    """,
    """
    CREATE UNIQUE INDEX batches_open_key ON batches (realm_id, agent_id) WHERE committed_at IS NULL
    """,
    """
    CREATE INDEX batches_poll_key_idx ON batches (realm_id, agent_id, batch_id DESC) WHERE poll_key IS NOT NULL
    """,
    """
    CREATE TABLE conv_members (
        realm_id INTEGER NOT NULL,
        agent_id BIGINT NOT NULL,
        conv_id BIGINT NOT NULL,
        last_read_id BIGINT DEFAULT '0' NOT NULL,
        read_id BIGINT DEFAULT '0' NOT NULL,
        handed_id BIGINT DEFAULT '0' NOT NULL,
        replay_until_id BIGINT DEFAULT '0' NOT NULL,
        joined_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        left_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT conv_members_pkey PRIMARY KEY (realm_id, agent_id, conv_id),
        CONSTRAINT conv_members_realm_id_agent_id_fkey FOREIGN KEY(realm_id, agent_id) REFERENCES agents (realm_id, agent_id),
        CONSTRAINT conv_members_realm_id_conv_id_fkey FOREIGN KEY(realm_id, conv_id) REFERENCES conversations (realm_id, conv_id) ON DELETE CASCADE,
        CONSTRAINT conv_members_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX conv_members_room_idx ON conv_members (realm_id, conv_id) WHERE left_at IS NULL
    """,
    """
    CREATE TABLE conv_messages (
        realm_id INTEGER NOT NULL,
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        conv_id BIGINT NOT NULL,
        sender_id BIGINT,
        sender_kind TEXT NOT NULL,
        box_id BIGINT,
        selector TEXT,
        client_id TEXT,
        content_hash BYTEA,
        type TEXT DEFAULT 'note' NOT NULL,
        body TEXT,
        payload JSONB,
        size INTEGER NOT NULL,
        urgent BOOLEAN DEFAULT false NOT NULL,
        thread_id TEXT,
        in_reply_to BIGINT,
        relay_of BIGINT,
        hop_limit SMALLINT DEFAULT '5' NOT NULL,
        late BOOLEAN DEFAULT false NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT conv_messages_pkey PRIMARY KEY (realm_id, id),
        CONSTRAINT conv_messages_realm_id_conv_id_fkey FOREIGN KEY(realm_id, conv_id) REFERENCES conversations (realm_id, conv_id) ON DELETE CASCADE,
        CONSTRAINT conv_messages_realm_id_sender_id_fkey FOREIGN KEY(realm_id, sender_id) REFERENCES agents (realm_id, agent_id),
        CONSTRAINT conv_messages_sender_kind_check CHECK (sender_kind IN ('session', 'box', 'person', 'system')),
        CONSTRAINT conv_messages_sender_check CHECK ((sender_kind = 'system') = (sender_id IS NULL)),
        CONSTRAINT conv_messages_body_check CHECK (body <> '' OR (body IS NULL AND payload ? 'summary')),
        CONSTRAINT conv_messages_payload_check CHECK (jsonb_typeof(payload) = 'object'),
        CONSTRAINT conv_messages_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE UNIQUE INDEX conv_messages_client_id_key ON conv_messages (realm_id, sender_id, client_id) WHERE client_id IS NOT NULL
    """,
    """
    CREATE UNIQUE INDEX conv_messages_room_key ON conv_messages (realm_id, conv_id, id)
    """,
    """
    CREATE INDEX conv_messages_thread_idx ON conv_messages (realm_id, thread_id, id) WHERE thread_id IS NOT NULL
    """,
    """
    CREATE TABLE tokens (
        realm_id INTEGER NOT NULL,
        token_id TEXT NOT NULL,
        name TEXT NOT NULL,
        slot SMALLINT NOT NULL,
        hash BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        revoked_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT tokens_pkey PRIMARY KEY (realm_id, token_id),
        CONSTRAINT tokens_realm_id_name_fkey FOREIGN KEY(realm_id, name) REFERENCES names (realm_id, name) ON DELETE CASCADE,
        CONSTRAINT tokens_slot_check CHECK (slot IN (1, 2)),
        CONSTRAINT tokens_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT tokens_hash_key UNIQUE (hash)
    )
    """,
    """
    CREATE UNIQUE INDEX tokens_slot_key ON tokens (realm_id, name, slot) WHERE revoked_at IS NULL
    """,
    """
    CREATE TABLE batch_rooms (
        realm_id INTEGER NOT NULL,
        batch_id BIGINT NOT NULL,
        conv_id BIGINT NOT NULL,
        first_id BIGINT NOT NULL,
        last_id BIGINT NOT NULL,
        cursor_id BIGINT NOT NULL,
        CONSTRAINT batch_rooms_pkey PRIMARY KEY (realm_id, batch_id, conv_id),
        CONSTRAINT batch_rooms_realm_id_batch_id_fkey FOREIGN KEY(realm_id, batch_id) REFERENCES batches (realm_id, batch_id) ON DELETE CASCADE,
        CONSTRAINT batch_rooms_realm_id_conv_id_fkey FOREIGN KEY(realm_id, conv_id) REFERENCES conversations (realm_id, conv_id) ON DELETE CASCADE,
        CONSTRAINT batch_rooms_range_check CHECK (first_id <= last_id AND last_id <= cursor_id),
        CONSTRAINT batch_rooms_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX batch_rooms_room_idx ON batch_rooms (realm_id, conv_id, last_id)
    """,
    "INSERT INTO realms (name) VALUES ('main')",
)

TABLES = (
    "batch_rooms",
    "tokens",
    "conv_messages",
    "conv_members",
    "batches",
    "names",
    "handle_counters",
    "conversations",
    "agents",
    "realms",
    "audit_log",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP TYPE namespace")
