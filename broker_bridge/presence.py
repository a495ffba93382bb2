"""Notices between the consumers and the producers of one realm, in the original's words.

Nobody is told of anonymous listeners: what they call themselves is anybody's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from broker_bridge.actions import Emit
from broker_bridge.connection import Connection, Producer
from broker_bridge.subscriptions import ANY_PRODUCER, Subscription, fold


def subscribed(
    consumer: Connection, subscription: Subscription, realm: Iterable[Connection]
) -> Iterator[Emit]:
    """A consumer subscribed: tell the producers it named, or all of them."""
    for connection in realm if _is_known(consumer) else ():
        for producer in connection.producers.values():
            if subscription.producer in (fold(producer.name), ANY_PRODUCER):
                yield _discovered(connection, producer, consumer, subscription)


def registered(holder: Connection, producer: Producer, realm: Iterable[Connection]) -> Iterator[Emit]:
    """A producer registered: it learns of its subscribers, and they of it."""
    for consumer in realm:
        for subscription in consumer.subscriptions.values():
            if subscription.producer in (fold(producer.name), ANY_PRODUCER):
                if _is_known(consumer):
                    yield _discovered(holder, producer, consumer, subscription)
                yield Emit(
                    consumer.id,
                    f"CONNECT-{consumer.consumer_id(subscription.consumer)}",
                    {"event": "CONNECT", "socket": holder.id, "producer": producer.name},
                )


def gone(left: Connection, realm: Iterable[Connection]) -> Iterator[Emit]:
    """A connection closed: whoever heard it, or was heard by it, is told once for each name."""
    for other in realm:
        for producer in left.producers.values():
            for consumer in _consumers(other, producer):
                yield Emit(
                    other.id,
                    f"DISCONNECT-{other.consumer_id(consumer)}",
                    {"event": "DISCONNECT", "socket": left.id, "producer": producer.name},
                )
        for producer in other.producers.values() if _is_known(left) else ():
            for consumer in _consumers(left, producer):
                yield Emit(
                    other.id,
                    f"DISCONNECT-{producer.id}",
                    {"event": "DISCONNECT", "socket": left.id, "consumer": consumer},
                )


def _is_known(consumer: Connection) -> bool:
    return consumer.admission is not None and consumer.admission.kind != "anonymous"


def _consumers(connection: Connection, producer: Producer) -> list[str]:
    """The connection's consumers that hear this producer, each once."""
    wanted = (fold(producer.name), ANY_PRODUCER)
    return list(dict.fromkeys(s.consumer for s in connection.subscriptions.values() if s.producer in wanted))


def _discovered(
    holder: Connection, producer: Producer, consumer: Connection, subscription: Subscription
) -> Emit:
    return Emit(
        holder.id,
        f"SUBSCRIBE-TO-{producer.id}",
        {
            "name": subscription.consumer,
            "id": consumer.consumer_id(subscription.consumer),
            "socket": consumer.id,
            "events": [subscription.key],
            "online": True,
        },
    )
