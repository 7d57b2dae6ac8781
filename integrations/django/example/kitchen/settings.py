"""As little of a project as Django takes."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("DATA", "data")).absolute()

SECRET_KEY = "not one"
USE_TZ = True
INSTALLED_APPS = ["artemis_py_django", "kitchen"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "kitchen.sqlite3"}}
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": FOLDER / "cache"},
}
TASKS = {
    "default": {
        "BACKEND": "artemis_py_django.ArtemisBackend",
        "QUEUES": ["default", "drinks"],
        "OPTIONS": {
            "servers": [os.environ.get("BROKER", "127.0.0.1:61613")],
            "results": "default",  # the cache that keeps them; without it nobody can ask for results
        },
    }
}
LOGGING = {
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
