"""Socket.io packets as both our ends read them: JSON text, and nothing beside it."""

from __future__ import annotations

import socketio

from broker_bridge import frames


class TextPacket(socketio.packet.Packet):  # type: ignore[misc]
    """Packets of JSON text alone: attachments would be held without bound until the last one came."""

    json = frames
    uses_binary_events = False

    def decode(self, encoded_packet: str) -> int:
        """Read a packet.

        Raises:
            ValueError: it is none, or has attachments; the caller drops it.
        """
        if super().decode(encoded_packet) or self.packet_type > socketio.packet.CONNECT_ERROR:
            raise ValueError("binary packets are not carried")
        return 0
