"""A backend of django.tasks whose tasks wait in a broker: ``artemis_py_django.ArtemisBackend`` in ``TASKS``.

``"artemis_py_django"`` in ``INSTALLED_APPS`` adds the command ``manage.py artemis_worker``, which runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from artemis_py_django.backend import ArtemisBackend

VERSION: Final = "0.1.0"

__all__ = ["VERSION", "ArtemisBackend"]


def __getattr__(name: str) -> Any:
    """Django imports an app before it is ready, and a backend after that."""
    if name == "ArtemisBackend":
        from artemis_py_django.backend import ArtemisBackend

        return ArtemisBackend
    raise AttributeError(name)
