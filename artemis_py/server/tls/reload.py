"""``sslAutoReload``: new connections get what the files hold now, and a broken file changes nothing."""

from __future__ import annotations

import time
from typing import final

from artemis_py.server.complaints import Complaints
from artemis_py.server.tls.context import Loaded, TlsError, TlsFiles
from artemis_py.server.tls.site import TlsSite


@final
class Reload:
    """Watches the files of one acceptor. ``look`` is for a thread, ``take`` for the event loop's."""

    def __init__(self, files: TlsFiles, site: TlsSite, complaints: Complaints) -> None:
        self._files = files
        self._site = site
        self._complaints = complaints
        self._stamps = files.stamps()

    def look(self) -> Loaded | TlsError | None:
        """Load the files if they have changed; None if they have not."""
        stamps = self._files.stamps()
        if stamps == self._stamps:
            return None
        paths = self._files.paths
        try:
            return self._checked(self._files.load())
        except TlsError as error:
            return error
        finally:
            # What changes while the files are read is found by the next look.
            self._stamps = stamps if self._files.paths == paths else self._files.stamps()

    def _checked(self, loaded: Loaded) -> Loaded:
        """A certificate that nobody would accept is no progress over one that is."""
        now_s = time.time()
        complaint = loaded.complaint(now_s)
        if complaint is not None and self._site.loaded.complaint(now_s) is None:
            raise TlsError(self._files.acceptor, complaint)
        return loaded

    def take(self, found: Loaded | TlsError) -> None:
        """Use what ``look`` found."""
        site = self._site
        if isinstance(found, TlsError):
            site.reload_failure = found.reason
            self._complaints.tell(
                f"warning: acceptor {site.name}: a changed file is not used, and new connections still get the "
                f"certificate loaded before: {found.reason}"
            )
            return
        site.reload_failure = None
        site.reloads += 1
        site.loaded = found
        self._complaints.tell(f"acceptor {site.name}: new connections get the certificate {found.shown}")
