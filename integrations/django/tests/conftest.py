"""Django, with the broker of a test (the fixture ``artemis``, of artemis_py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from artemis_py_django import ArtemisBackend
from artemis_py_django.background import background
from django.conf import settings
from django.tasks import task_backends
from django.test import override_settings

from artemis_py.testing import ArtemisBroker

settings.configure(INSTALLED_APPS=["artemis_py_django"], USE_TZ=True, DATABASES={})
django.setup()

Configure = Callable[..., ArtemisBackend]


@pytest.fixture
def configure(artemis: ArtemisBroker, tmp_path: Path) -> Iterator[Configure]:
    """Sets TASKS, with these OPTIONS beside the usual ones; returns the backend."""
    made: list[Any] = []

    def one(**options: Any) -> ArtemisBackend:
        usual = {"servers": [f"{artemis.host}:{artemis.port}"], "answer_s": 5.0}
        tasks = {
            "default": {
                "BACKEND": "artemis_py_django.ArtemisBackend",
                "QUEUES": ["default", "other"],
                "OPTIONS": {**usual, **options},
            }
        }
        kept = {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": str(tmp_path / "kept")}
        local = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
        made.append(override_settings(TASKS=tasks, CACHES={"default": local, "kept": kept}))
        made[-1].enable()
        backend = task_backends["default"]
        assert isinstance(backend, ArtemisBackend)
        return backend

    yield one
    for settings_of_one in reversed(made):
        settings_of_one.disable()
    for sender in background._senders.values():
        background.call(sender.close())
    background._senders.clear()


@pytest.fixture
def backend(configure: Configure) -> ArtemisBackend:
    return configure(results="kept")
