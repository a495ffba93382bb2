"""The record in one piece: what every face is handed."""

from __future__ import annotations

from dataclasses import dataclass

from api.db import Database
from api.services.admissions import Admissions
from api.services.closing import Closing
from api.services.identity import Identity
from api.services.invites import Redeeming
from api.services.messages import Messages
from api.services.metrics import Metrics
from api.services.nerve_names import NerveNames
from api.services.nerve_queues import NerveQueues
from api.services.reading import Reading
from api.services.rooms import Rooms
from api.services.webhooks import Webhooks
from api.settings import Settings
from broker_bridge.nerve import Nerve


@dataclass(frozen=True, slots=True)
class Record:
    """Built once by `app.py`."""

    settings: Settings
    db: Database
    nerve: Nerve
    metrics: Metrics
    identity: Identity
    admissions: Admissions
    rooms: Rooms
    messages: Messages
    reading: Reading
    closing: Closing
    webhooks: Webhooks
    redeeming: Redeeming
    queues: NerveQueues
    names: NerveNames
