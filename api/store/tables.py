"""The record's tables. Migrations build the same; a test compares the two.

The realm is the first column of every key, so that a realm can one day stand on a server of its own.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


class Namespace(sa.types.UserDefinedType[str]):
    """A range of names: what one box, person or role occupies."""

    cache_ok = True
    DDL = 'CREATE TYPE namespace AS RANGE (subtype = text, collation = "C")'

    def get_col_spec(self, **_: Any) -> str:
        """The type's name in PostgreSQL."""
        return "namespace"


def _moment(name: str, *, nullable: bool = True) -> sa.Column[Any]:
    default = None if nullable else sa.text("clock_timestamp()")
    return sa.Column(name, sa.TIMESTAMP(timezone=True), nullable=nullable, server_default=default)


def _realm() -> sa.Column[Any]:
    return sa.Column(
        "realm_id", sa.Integer, sa.ForeignKey("realms.realm_id", ondelete="CASCADE"), primary_key=True
    )


def _agent(column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["realm_id", column], ["agents.realm_id", "agents.agent_id"])


def _room() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["realm_id", "conv_id"], ["conversations.realm_id", "conversations.conv_id"], ondelete="CASCADE"
    )


def _id(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, sa.Identity(always=True), primary_key=True)


realms = sa.Table(
    "realms",
    metadata,
    sa.Column("realm_id", sa.Integer, sa.Identity(always=True), primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    _moment("created_at", nullable=False),
    _moment("expires_at"),
    sa.Column("keep_days", sa.Integer),  # null: as the service's setting says
    # Whether the nerve lets anybody hear what other programs produce in it; nudges are never heard so.
    sa.Column("anonymous_listeners", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.CheckConstraint("keep_days >= 1", name="keep_days"),
)

names = sa.Table(
    "names",
    metadata,
    _realm(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column(
        "span",
        Namespace,
        # A box or person owns its name and all `<name>-…`: "." follows "-" in this collation.
        # A role owns only itself.
        sa.Computed(
            "CASE WHEN kind = 'role'"
            " THEN namespace(realm_id::text || '/' || name, realm_id::text || '/' || name, '[]')"
            " ELSE namespace(realm_id::text || '/' || name, realm_id::text || '/' || name || '.', '[)') END",
            persisted=True,
        ),
    ),
    _moment("created_at", nullable=False),
    sa.CheckConstraint("kind IN ('box', 'person', 'role')", name="kind"),
    pg.ExcludeConstraint((sa.column("span"), "&&"), name="names_span_excl", using="gist"),
)


def _tokens(table: str, *, of: str) -> sa.Table:
    """Tokens of the names in the table `of`."""
    return sa.Table(
        table,
        metadata,
        _realm(),
        sa.Column("token_id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("slot", sa.SmallInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
        _moment("created_at", nullable=False),
        _moment("expires_at"),
        _moment("revoked_at"),
        sa.ForeignKeyConstraint(["realm_id", "name"], [f"{of}.realm_id", f"{of}.name"], ondelete="CASCADE"),
        sa.CheckConstraint("slot IN (1, 2)", name="slot"),
        # Two valid tokens of one name at a time, so that rotation has no gap.
        sa.Index(
            f"{table}_slot_key",
            "realm_id",
            "name",
            "slot",
            unique=True,
            postgresql_where=sa.text("revoked_at IS NULL"),
        ),
    )


tokens = _tokens("tokens", of="names")

# Other programs on the nerve. They are no agents: their names are a space of their own.
nerve_clients = sa.Table(
    "nerve_clients",
    metadata,
    _realm(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    _moment("created_at", nullable=False),
    sa.CheckConstraint("role IN ('consumer', 'producer', 'both')", name="role"),
)

nerve_tokens = _tokens("nerve_tokens", of="nerve_clients")

# Unused ones only: who logs in with a ticket deletes it.
nerve_tickets = sa.Table(
    "nerve_tickets",
    metadata,
    _realm(),
    sa.Column("hash", sa.LargeBinary, primary_key=True, unique=True),
    sa.Column("token_id", sa.Text, nullable=False),
    sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(
        ["realm_id", "token_id"], ["tokens.realm_id", "tokens.token_id"], ondelete="CASCADE"
    ),
    sa.Index("nerve_tickets_realm_id_token_id_idx", "realm_id", "token_id"),
)

agents = sa.Table(
    "agents",
    metadata,
    _realm(),
    _id("agent_id"),
    sa.Column("handle", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("box_id", sa.BigInteger),  # a box's own id, its box's for a session, null for a person
    sa.Column("label", sa.Text),
    sa.Column("role", sa.Text),
    sa.Column("addresses", pg.ARRAY(sa.Text), nullable=False),  # every selector that matches this agent
    sa.Column("harness", sa.Text),
    sa.Column("cwd", sa.Text),
    sa.Column("title", sa.Text),
    # The Idempotency-Key of the check-in that made it and of the last that took it up; what came with each.
    sa.Column("checkin_key", sa.Text),
    sa.Column("checkin_hash", sa.LargeBinary),
    sa.Column("resume_key", sa.Text),
    sa.Column("resume_hash", sa.LargeBinary),
    # What was addressed up to here to the name, or to what begins with it, was for an earlier holder.
    sa.Column("floor_id", sa.BigInteger, nullable=False, server_default="0"),
    _moment("doubled_at"),  # when a second live process was last noticed on this handle
    sa.Column("state", sa.Text, nullable=False, server_default="unknown"),
    _moment("state_at", nullable=False),
    _moment("last_seen", nullable=False),
    _moment("offline_since"),
    sa.Column("wake_rung", sa.Text),
    sa.Column("wake_outcome", sa.Text),
    sa.Column("wake_reason", sa.Text),
    _moment("wake_at"),
    _moment("created_at", nullable=False),
    _moment("retired_at"),
    sa.UniqueConstraint("realm_id", "handle"),
    sa.CheckConstraint("kind IN ('session', 'box', 'person')", name="kind"),
    sa.CheckConstraint("(kind = 'person') = (box_id IS NULL)", name="box"),
    sa.CheckConstraint(
        "state IN ('starting', 'idle', 'busy', 'waiting', 'suspended', 'offline', 'unknown')", name="state"
    ),
    sa.Index("agents_box_idx", "realm_id", "box_id"),
    sa.Index("agents_retired_at_idx", "retired_at", postgresql_where=sa.text("retired_at IS NOT NULL")),
    sa.Index(
        "agents_checkin_key",
        "realm_id",
        "box_id",
        "checkin_key",
        unique=True,
        postgresql_where=sa.text("checkin_key IS NOT NULL"),
    ),
    sa.Index(
        "agents_resume_key",
        "realm_id",
        "box_id",
        "resume_key",
        unique=True,
        postgresql_where=sa.text("resume_key IS NOT NULL"),
    ),
)

handle_counters = sa.Table(
    "handle_counters",
    metadata,
    _realm(),
    sa.Column("label", sa.Text, primary_key=True),
    sa.Column("last_n", sa.BigInteger, nullable=False),
)

conversations = sa.Table(
    "conversations",
    metadata,
    _realm(),
    _id("conv_id"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("title", sa.Text),
    # `@<address>` is hidden: it cannot be listed, joined or read by name.
    sa.Column("hidden", sa.Boolean, sa.Computed("left(name, 1) = '@'", persisted=True)),
    _moment("created_at", nullable=False),
    sa.UniqueConstraint("realm_id", "name"),
)

conv_members = sa.Table(
    "conv_members",
    metadata,
    _realm(),
    sa.Column("agent_id", sa.BigInteger, primary_key=True),
    sa.Column("conv_id", sa.BigInteger, primary_key=True),
    sa.Column("last_read_id", sa.BigInteger, nullable=False, server_default="0"),  # the cursor
    # How far the cursor was moved by reading, not by joining.
    sa.Column("read_id", sa.BigInteger, nullable=False, server_default="0"),
    # How far batches went that were handed over and dropped: what comes again of them is marked.
    sa.Column("handed_id", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("replay_until_id", sa.BigInteger, nullable=False, server_default="0"),
    # Where the cursor was when they joined: of what was said before, what came later was theirs to read.
    sa.Column("since_id", sa.BigInteger, nullable=False, server_default="0"),
    # What was said before this is heard only if it has an expiry of its own; null: all is heard.
    _moment("briefed_since"),
    _moment("joined_at", nullable=False),
    _moment("left_at"),  # the row stays, so that joining again shows nothing twice
    _agent("agent_id"),
    _room(),
    sa.Index("conv_members_room_idx", "realm_id", "conv_id", postgresql_where=sa.text("left_at IS NULL")),
)

# Memberships that ended before the one that conv_members knows, and in which something may have been said.
past_members = sa.Table(
    "past_members",
    metadata,
    _realm(),
    sa.Column("agent_id", sa.BigInteger, primary_key=True),
    sa.Column("conv_id", sa.BigInteger, primary_key=True),
    sa.Column("joined_at", sa.TIMESTAMP(timezone=True), primary_key=True),
    sa.Column("left_at", sa.TIMESTAMP(timezone=True), nullable=False),
    _agent("agent_id"),
    _room(),
)

# Of sessions that were taken up again.
past_retirements = sa.Table(
    "past_retirements",
    metadata,
    _realm(),
    sa.Column("agent_id", sa.BigInteger, primary_key=True),
    sa.Column("retired_at", sa.TIMESTAMP(timezone=True), primary_key=True),
    _moment("ended_at", nullable=False),
    _agent("agent_id"),
)

conv_messages = sa.Table(
    "conv_messages",
    metadata,
    _realm(),
    _id("id"),
    sa.Column("conv_id", sa.BigInteger, nullable=False),
    sa.Column("sender_id", sa.BigInteger),  # null: the system itself
    sa.Column("sender_kind", sa.Text, nullable=False),
    sa.Column("box_id", sa.BigInteger),
    sa.Column("selector", sa.Text),  # `to` on the wire
    sa.Column("client_id", sa.Text),
    sa.Column("content_hash", sa.LargeBinary),
    sa.Column("type", sa.Text, nullable=False, server_default="note"),
    sa.Column("body", sa.Text),
    sa.Column("payload", pg.JSONB(none_as_null=True)),
    sa.Column("size", sa.Integer, nullable=False),  # bytes of body and payload
    sa.Column("urgent", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("thread_id", sa.Text),
    sa.Column("in_reply_to", sa.BigInteger),
    sa.Column("relay_of", sa.BigInteger),
    sa.Column("hop_limit", sa.SmallInteger, nullable=False, server_default="5"),
    sa.Column("late", sa.Boolean, nullable=False, server_default=sa.false()),
    _moment("created_at", nullable=False),
    _moment("expires_at"),
    _room(),
    _agent("sender_id"),
    sa.CheckConstraint("sender_kind IN ('session', 'box', 'person', 'system')", name="sender_kind"),
    sa.CheckConstraint("(sender_kind = 'system') = (sender_id IS NULL)", name="sender"),
    sa.CheckConstraint("body <> '' OR (body IS NULL AND payload ? 'summary')", name="body"),
    sa.CheckConstraint("jsonb_typeof(payload) = 'object'", name="payload"),
    sa.Index("conv_messages_room_key", "realm_id", "conv_id", "id", unique=True),
    sa.Index(
        "conv_messages_client_id_key",
        "realm_id",
        "sender_id",
        "client_id",
        unique=True,
        postgresql_where=sa.text("client_id IS NOT NULL"),
    ),
    sa.Index(
        "conv_messages_selector_idx",
        "realm_id",
        "selector",
        "conv_id",
        "id",
        postgresql_where=sa.text("selector IS NOT NULL"),
    ),
    sa.Index(
        "conv_messages_thread_idx",
        "realm_id",
        "thread_id",
        "id",
        postgresql_where=sa.text("thread_id IS NOT NULL"),
    ),
    sa.Index(
        "conv_messages_expires_at_idx", "expires_at", postgresql_where=sa.text("expires_at IS NOT NULL")
    ),
    sa.Index("conv_messages_words_idx", sa.text("message_words(body, payload)"), postgresql_using="gin"),
)

batches = sa.Table(
    "batches",
    metadata,
    _realm(),
    _id("batch_id"),
    sa.Column("agent_id", sa.BigInteger, nullable=False),
    sa.Column("lease", sa.Text),
    sa.Column("poll_key", sa.Text),
    _moment("handed_at", nullable=False),
    _moment("fresh_until"),  # while it is, an open batch does not count as unread
    _moment("committed_at"),
    _agent("agent_id"),
    sa.UniqueConstraint("realm_id", "lease"),
    # A reader has one open batch at a time.
    sa.Index(
        "batches_open_key",
        "realm_id",
        "agent_id",
        unique=True,
        postgresql_where=sa.text("committed_at IS NULL"),
    ),
    sa.Index(
        "batches_poll_key_idx",
        "realm_id",
        "agent_id",
        sa.text("batch_id DESC"),
        postgresql_where=sa.text("poll_key IS NOT NULL"),
    ),
)

batch_rooms = sa.Table(
    "batch_rooms",
    metadata,
    _realm(),
    sa.Column("batch_id", sa.BigInteger, primary_key=True),
    sa.Column("conv_id", sa.BigInteger, primary_key=True),
    sa.Column("first_id", sa.BigInteger, nullable=False),
    sa.Column("last_id", sa.BigInteger, nullable=False),
    sa.Column(
        "cursor_id", sa.BigInteger, nullable=False
    ),  # where the cursor goes when the batch is committed
    sa.ForeignKeyConstraint(
        ["realm_id", "batch_id"], ["batches.realm_id", "batches.batch_id"], ondelete="CASCADE"
    ),
    _room(),
    sa.CheckConstraint("first_id <= last_id AND last_id <= cursor_id", name="range"),
    sa.Index("batch_rooms_room_idx", "realm_id", "conv_id", "last_id"),
)

undelivered = sa.Table(
    "undelivered",
    metadata,
    _realm(),
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    _moment("reported_at", nullable=False),
    sa.ForeignKeyConstraint(
        ["realm_id", "id"], ["conv_messages.realm_id", "conv_messages.id"], ondelete="CASCADE"
    ),
    sa.CheckConstraint("reason IN ('expired', 'retired')", name="reason"),
)

# What was addressed when nobody was there whom it was for, and waits for somebody to come.
unheard = sa.Table(
    "unheard",
    metadata,
    _realm(),
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=False),  # when it closes, should nobody come
    sa.ForeignKeyConstraint(
        ["realm_id", "id"], ["conv_messages.realm_id", "conv_messages.id"], ondelete="CASCADE"
    ),
    sa.Index("unheard_due_at_idx", "due_at"),
)

sweeps = sa.Table(
    "sweeps",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    _moment("until", nullable=False),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    _realm(),
    sa.Column("webhook_id", sa.Text, primary_key=True),
    sa.Column("agent_id", sa.BigInteger, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),  # as it is: a signature cannot be made of its hash
    sa.Column("old_secret", sa.Text),
    _moment("old_secret_until"),  # until then the old one signs, too
    sa.Column("since_id", sa.BigInteger, nullable=False),  # what was said before it existed is not its affair
    _moment("created_at", nullable=False),
    _moment("next_at", nullable=False),  # when it may be tried; a replica that tries it moves this ahead
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),  # that failed, one after another
    _moment("failing_since"),
    sa.Column("failure", sa.Text),
    _moment("disabled_at"),
    _agent("agent_id"),
    sa.Index("webhooks_agent_idx", "realm_id", "agent_id"),
)

webhook_rooms = sa.Table(
    "webhook_rooms",
    metadata,
    _realm(),
    sa.Column("webhook_id", sa.Text, primary_key=True),
    sa.Column("conv_id", sa.BigInteger, primary_key=True),
    sa.Column("looked_id", sa.BigInteger, nullable=False),  # messages up to here were looked at
    sa.Column("nudged_id", sa.BigInteger, nullable=False, server_default="0"),  # the newest to tell of
    sa.Column("told_id", sa.BigInteger, nullable=False, server_default="0"),  # the newest told of
    sa.ForeignKeyConstraint(
        ["realm_id", "webhook_id"], ["webhooks.realm_id", "webhooks.webhook_id"], ondelete="CASCADE"
    ),
    _room(),
    sa.Index(
        "webhook_rooms_waiting_idx",
        "realm_id",
        "webhook_id",
        "nudged_id",
        postgresql_where=sa.text("nudged_id > told_id"),
    ),
)

# Open ones only: who redeems or revokes an invite deletes it.
invites = sa.Table(
    "invites",
    metadata,
    _realm(),
    sa.Column("invite_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
    _moment("created_at", nullable=False),
    sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
)

# What other programs' durable subscribers wait for on the nerve; nudges are never here.
nerve_queues = sa.Table(
    "nerve_queues",
    metadata,
    _realm(),
    _id("queue_id"),
    sa.Column("holder", sa.Text, nullable=False),  # the name whose token subscribed
    sa.Column("consumer_id", sa.Text, nullable=False),
    sa.Column("producer", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("topic", sa.Boolean, nullable=False),
    sa.Column("consumer", sa.Text, nullable=False),
    sa.Column("group_name", sa.Text),
    sa.Column("durable", sa.Boolean, nullable=False),
    sa.Column("ack_seconds", sa.Double),  # null: a message is done with when it has been sent
    sa.Column("attempts", sa.SmallInteger, nullable=False),
    sa.Column("delay_seconds", sa.Double, nullable=False),
    sa.Column("exponential", sa.Boolean, nullable=False),
    _moment("seen_at", nullable=False),
    sa.UniqueConstraint(
        "realm_id", "holder", "consumer_id", "producer", "event", "topic", name="nerve_queues_key"
    ),
    sa.Index("nerve_queues_event_idx", "realm_id", "event"),
)

nerve_messages = sa.Table(
    "nerve_messages",
    metadata,
    _realm(),
    _id("message_id"),
    sa.Column("queue_id", sa.BigInteger, nullable=False),
    sa.Column("envelope", sa.Text, nullable=False),  # JSON in ASCII, as it goes out
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("attempts", sa.SmallInteger, nullable=False, server_default="0"),  # how often it was sent
    sa.Column("timeouts", sa.SmallInteger, nullable=False, server_default="0"),  # not acknowledged in time
    sa.Column("sent_to", sa.Text),  # the connection that it went over last
    _moment("created_at", nullable=False),
    _moment("due_at", nullable=False),
    sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
    _moment("dead_at"),
    sa.ForeignKeyConstraint(
        ["realm_id", "queue_id"], ["nerve_queues.realm_id", "nerve_queues.queue_id"], ondelete="CASCADE"
    ),
    sa.Index("nerve_messages_queue_idx", "realm_id", "queue_id", "message_id"),
    sa.Index("nerve_messages_expires_at_idx", "expires_at"),
    sa.Index(
        "nerve_messages_dead_idx",
        "realm_id",
        "message_id",
        postgresql_where=sa.text("dead_at IS NOT NULL"),
    ),
)

# Which holder of a nerve token goes by a producer's name, over which connections of any replica.
nerve_names = sa.Table(
    "nerve_names",
    metadata,
    _realm(),
    sa.Column("name", sa.Text, primary_key=True),  # in lower case
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("links", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
    sa.Index("nerve_names_expires_at_idx", "expires_at"),
)

audit_log = sa.Table(
    "audit_log",
    metadata,
    sa.Column("audit_id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("realm", sa.Text),
    sa.Column("act", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    _moment("at", nullable=False),
)

# What stands together in code (`foo_bar.baz`, `getUserName`, `HTTPServer`) and what no blank divides
# (Han, Kana, Hangul) becomes words of its own.
SPLIT_WORDS = r"""
    CREATE FUNCTION split_words(said text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN regexp_replace(
        regexp_replace(
            regexp_replace(
                regexp_replace(said, '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'),
                '([[:upper:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
            '([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])', ' \1 ', 'g'),
        '[^[:alnum:]]+', ' ', 'g')
"""

MESSAGE_WORDS = r"""
    CREATE FUNCTION message_words(body text, payload jsonb) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector('simple'::regconfig, split_words(coalesce(body, payload ->> 'summary', '')))
        || to_tsvector('simple'::regconfig,
                       regexp_replace(coalesce(body, payload ->> 'summary', ''), '[^[:alnum:]]+', ' ', 'g'))
"""

SEARCHED_WORDS = r"""
    CREATE FUNCTION searched_words(sought text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN plainto_tsquery('simple'::regconfig, split_words(sought))
        || plainto_tsquery('simple'::regconfig, regexp_replace(sought, '[^[:alnum:]]+', ' ', 'g'))
"""

for _ddl in (Namespace.DDL, SPLIT_WORDS, MESSAGE_WORDS, SEARCHED_WORDS):
    sa.event.listen(metadata, "before_create", sa.DDL(_ddl))  # type: ignore[no-untyped-call]
