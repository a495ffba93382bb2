"""Which nerve token goes by which producer's name, at whichever replica."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE nerve_names (
        realm_id INTEGER NOT NULL,
        name TEXT NOT NULL,
        holder TEXT NOT NULL,
        links TEXT[] NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT nerve_names_pkey PRIMARY KEY (realm_id, name),
        CONSTRAINT nerve_names_realm_id_fkey FOREIGN KEY(realm_id) REFERENCES realms (realm_id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX nerve_names_expires_at_idx ON nerve_names (expires_at)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE nerve_names")
