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
        selector TEXT NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT unheard_pkey PRIMARY KEY (realm_id, id),
        CONSTRAINT unheard_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE,
        CONSTRAINT unheard_realm_id_id_fkey FOREIGN KEY(realm_id, id)
            REFERENCES conv_messages (realm_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX unheard_selector_idx ON unheard (realm_id, selector)",
    "CREATE INDEX unheard_due_at_idx ON unheard (due_at) WHERE due_at IS NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("unheard", "past_retirements", "past_members"):
        op.execute(f"DROP TABLE {table}")
