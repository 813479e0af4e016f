"""Failed TLS handshakes of a server, which no event loop reports.

asyncio and uvloop close the socket of such a client, and notify neither side of the reason. The
context of the server makes an object for each connection, of the class that `sslobject_class` names
and that may be overridden; here, its `do_handshake` reports the errors.
"""

from collections.abc import Callable
from ssl import SSLContext, SSLError, SSLObject, SSLWantReadError, SSLWantWriteError
from typing import Final
from weakref import WeakKeyDictionary

Report = Callable[[SSLError], object]

_reports: Final[WeakKeyDictionary[SSLContext, list[Report]]] = WeakKeyDictionary()


def add_handshake_report(context: SSLContext, report: Report) -> None:
    """Call *report* with the error of each handshake by *context* that fails.

    Servers that share a context all receive its errors.
    """
    if context not in _reports:
        _reports[context] = []
        base: type[SSLObject] = context.sslobject_class
        vars(context)["sslobject_class"] = _reporting(base)
    _reports[context].append(report)


def remove_handshake_report(context: SSLContext, report: Report) -> None:
    """Undo `add_handshake_report`."""
    reports = _reports.get(context, [])
    if report in reports:
        reports.remove(report)


def _reporting(base: type[SSLObject]) -> type[SSLObject]:
    class ReportingSSLObject(base):  # type: ignore[misc, valid-type]
        """Reports the error of its handshake."""

        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (SSLWantReadError, SSLWantWriteError):
                raise  # it goes on when more has been received or sent
            except SSLError as error:
                for report in tuple(_reports.get(self.context, ())):
                    report(error)
                raise

    return ReportingSSLObject
