"""Full text search over messages."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# What stands together in code (`foo_bar.baz`, `getUserName`, `HTTPServer`) and what no blank divides (Han, Kana, Hangul)
# becomes words of its own.
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


def upgrade() -> None:
    for statement in (SPLIT_WORDS, MESSAGE_WORDS, SEARCHED_WORDS):
        op.execute(statement)
    op.execute(
        "CREATE INDEX conv_messages_words_idx ON conv_messages USING gin (message_words(body, payload))"
    )


def downgrade() -> None:
    op.execute("DROP INDEX conv_messages_words_idx")
    for function in ("searched_words", "message_words", "split_words"):
        op.execute(f"DROP FUNCTION {function}")
