"""Socket.io packets as both our ends read them: JSON text, and nothing beside it."""

from __future__ import annotations

import json

import socketio

from broker_bridge import frames


class TextPacket(socketio.packet.Packet):  # type: ignore[misc]
    """Packets of JSON text alone: attachments would be held without bound until the last one came."""

    json = frames
    uses_binary_events = False

    def decode(self, encoded_packet: str) -> int:
        """Read a packet.

        Raises:
            ValueError: it is none, has attachments, or is for another namespace; the caller drops it.
        """
        try:
            attachments = super().decode(encoded_packet)
        except (RecursionError, frames.TooMany):
            attachments, self.data = 0, _without_payload(encoded_packet)
        if attachments or self.packet_type > socketio.packet.CONNECT_ERROR:
            raise ValueError("binary packets are not carried")
        if self.namespace not in (None, "/"):
            raise ValueError("there is one namespace")
        return 0


def _without_payload(text: str) -> list[object]:
    """The event alone of a packet whose payload is too deep or too much, so that its sender is answered."""
    event, _ = json.JSONDecoder().raw_decode(text, text.index("[") + 1)
    return [event]
