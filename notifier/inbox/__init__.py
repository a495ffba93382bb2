"""What the notifier decides: events and a clock's value in, actions out. No I/O, no clock."""

from notifier.inbox.actions import Action, CheckUnread, Outcome, Report, TellPerson, Wake, WakeReport
from notifier.inbox.machine import Inbox
from notifier.inbox.policy import Policy
from notifier.inbox.seat import Counts
from notifier.inbox.wake_on import WakeRules, read_rules

__all__ = [
    "Action",
    "CheckUnread",
    "Counts",
    "Inbox",
    "Outcome",
    "Policy",
    "Report",
    "TellPerson",
    "Wake",
    "WakeReport",
    "WakeRules",
    "read_rules",
]
