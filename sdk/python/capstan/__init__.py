"""Capabilities of Capstan in Python, and a client of its API."""

from .call import Call, CallCancelled, CallFailure
from .capability import Capability, capability
from .client import Capstan, CapstanError, Run, RunFailed
from .later import SentResult, later, send_result
from .media import MediaReference
from .serve import Instance

__all__ = [
    "Call",
    "CallCancelled",
    "CallFailure",
    "Capability",
    "Capstan",
    "CapstanError",
    "Instance",
    "MediaReference",
    "Run",
    "RunFailed",
    "SentResult",
    "capability",
    "later",
    "send_result",
]
