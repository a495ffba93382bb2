"""Who was in a room before, who was retired, and what was addressed when nobody was there whom it was for.

What was overwritten until now is not known any more: the tables begin empty.
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE past_members (
        realm_id INTEGER NOT NULL,
        agent_id BIGINT NOT NULL,
        conv_id BIGINT NOT NULL,
        joined_at TIMESTAMP WITH TIME ZONE NOT NULL,
        left_at TIMESTAMP WITH TIME ZONE NOT NULL,
        since_id BIGINT NOT NULL,
        CONSTRAINT past_members_pkey PRIMARY KEY (realm_id, agent_id, conv_id, joined_at),
        CONSTRAINT past_members_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT past_members_realm_id_agent_id_fkey FOREIGN KEY(realm_id, agent_id)
            REFERENCES agents (realm_id, agent_id),
        CONSTRAINT past_members_realm_id_conv_id_fkey FOREIGN KEY(realm_id, conv_id)
            REFERENCES conversations (realm_id, conv_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE past_retirements (
        realm_id INTEGER NOT NULL,
        agent_id BIGINT NOT NULL,
        retired_at TIMESTAMP WITH TIME ZONE NOT NULL,
        ended_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT past_retirements_pkey PRIMARY KEY (realm_id, agent_id, retired_at),
        CONSTRAINT past_retirements_realm_id_fkey FOREIGN KEY(realm_id)
            REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT past_retirements_realm_id_agent_id_fkey FOREIGN KEY(realm_id, agent_id)
            REFERENCES agents (realm_id, agent_id)
    )
    """,
    """
    CREATE TABLE unheard (
        realm_id INTEGER NOT NULL,
        id BIGINT NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT unheard_pkey PRIMARY KEY (realm_id, id),
        CONSTRAINT unheard_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT unheard_realm_id_id_fkey FOREIGN KEY(realm_id, id)
            REFERENCES conv_messages (realm_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX unheard_due_at_idx ON unheard (due_at)",
    """
    CREATE INDEX conv_messages_selector_idx ON conv_messages (realm_id, selector, conv_id, id)
     WHERE selector IS NOT NULL
    """,
    # Each kind of report goes on by itself from here.
    """
    INSERT INTO sweeps (name, until)
    SELECT kind, until FROM sweeps, unnest(ARRAY['retired', 'abandoned', 'unheard']) AS kind
     WHERE name = 'closing'
    """,
    "UPDATE sweeps SET name = 'expired' WHERE name = 'closing'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DELETE FROM sweeps WHERE name IN ('retired', 'abandoned', 'unheard')")
    op.execute("UPDATE sweeps SET name = 'closing' WHERE name = 'expired'")
    op.execute("DROP INDEX conv_messages_selector_idx")
    for table in ("unheard", "past_retirements", "past_members"):
        op.execute(f"DROP TABLE {table}")
