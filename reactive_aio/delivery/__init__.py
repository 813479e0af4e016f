"""Deliveries: an element is acknowledged when its work is done, and only then.

A `DeliveryFlow` carries values through its operators, and each value's tie to the delivery of the
source that it was made of. What becomes of the value decides about the delivery: an element
whose work is done, or that was filtered out, is acknowledged; one that fails, or is left over when
the flow ends, is nacked; and what a crash takes was neither, so that the source delivers it again.

What decides is pure: `ties` (one element, its parts, its list), `commit_tracker` (positions of a
log), `nack_policy` (what follows from a failure) and `session` (when a subscription is over). The
`head` keeps the deliveries and acts, and `source_calls` awaits the functions of the source.
"""

from sys import modules as _modules

from .._shared.foreign_options import explain_foreign_options as _explain_foreign_options
from .delivery import Delivery
from .delivery_flow import DeliveryFlow
from .errors import AlreadySettled, BatchFailed, Unfinished
from .outages import Outage
from .starting import deliveries, log_deliveries

__all__ = (
    "AlreadySettled",
    "BatchFailed",
    "Delivery",
    "DeliveryFlow",
    "Outage",
    "Unfinished",
    "deliveries",
    "log_deliveries",
)

_explain_foreign_options(_modules[__name__], __all__)
