"""Pages of messages, which have an end in bytes, too: nothing beyond it is read."""

from __future__ import annotations

PAGE_BYTES = 4 * 1024 * 1024
"""Of bodies and payloads in one page; the first message always comes."""


def page(candidates: str, *, order: str, limit: str) -> str:
    """What stands before a SELECT from `page`: the first of the candidates, within `limit` and PAGE_BYTES.

    Args:
        candidates: a SELECT of at least `id` and `size`, with one row more than `limit` where there is one.
        order: of the candidates.
        limit: how many rows a page has at most, as an int.
    """
    return f"""
    WITH candidates AS MATERIALIZED ({candidates}), counted AS (
        SELECT *, row_number() OVER so_far AS place, sum(size) OVER so_far AS bytes
          FROM candidates WINDOW so_far AS (ORDER BY {order} ROWS UNBOUNDED PRECEDING)
    ), page AS MATERIALIZED (
        SELECT * FROM counted WHERE place <= {limit} AND (bytes <= {PAGE_BYTES} OR place = 1)
    )
    """


MORE = "(SELECT count(*) FROM candidates) > (SELECT count(*) FROM page) AS more"
"""Whether something is behind the page."""
