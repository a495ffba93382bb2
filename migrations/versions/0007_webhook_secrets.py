"""A webhook's old secret, which signs beside the new one for a time."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE webhooks ADD COLUMN old_secret TEXT")
    op.execute("ALTER TABLE webhooks ADD COLUMN old_secret_until TIMESTAMP WITH TIME ZONE")


def downgrade() -> None:
    op.execute("ALTER TABLE webhooks DROP COLUMN old_secret_until")
    op.execute("ALTER TABLE webhooks DROP COLUMN old_secret")
