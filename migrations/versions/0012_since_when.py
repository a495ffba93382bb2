"""Where each member's cursor was when they joined; of earlier memberships nothing but their time.

Of who is there now it is not known any more: what they may have passed as well as read counts as not theirs,
unless they were there when it was said.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE conv_members ADD COLUMN since_id BIGINT DEFAULT '0' NOT NULL")
    op.execute("UPDATE conv_members SET since_id = least(last_read_id, replay_until_id)")
    op.execute("ALTER TABLE past_members DROP COLUMN since_id")


def downgrade() -> None:
    op.execute("ALTER TABLE past_members ADD COLUMN since_id BIGINT DEFAULT '0' NOT NULL")
    op.execute("ALTER TABLE past_members ALTER COLUMN since_id DROP DEFAULT")
    op.execute("ALTER TABLE conv_members DROP COLUMN since_id")
