"""The record as a workstation sees it: its REST API, and nothing else."""

from notifier.record.client import Record
from notifier.record.transport import RecordError, RecordUnreachable, Refused

__all__ = ["Record", "RecordError", "RecordUnreachable", "Refused"]
