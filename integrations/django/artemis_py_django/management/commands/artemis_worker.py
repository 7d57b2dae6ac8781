"""``manage.py artemis_worker``: run the tasks that wait in the broker."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from typing import Any, Final

from artemis_py_tasks import RefusedError
from django.core.management.base import BaseCommand, CommandError
from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, task_backends
from django.tasks.exceptions import InvalidTaskBackend

from artemis_py_django.backend import ArtemisBackend
from artemis_py_django.worker import Worker

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Command(BaseCommand):
    """See the module."""

    help = "Run the tasks that wait in the broker, one at a time. SIGTERM lets it finish the one that runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its options."""
        parser.add_argument("--backend", default=DEFAULT_TASK_BACKEND_ALIAS, help="a name in TASKS (default: default)")
        parser.add_argument(
            "--queue", action="append", metavar="NAME", help="a queue; again for several (default: all of the backend)"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Run it."""
        try:
            backend = task_backends[options["backend"]]
        except InvalidTaskBackend as error:
            raise CommandError(str(error)) from None
        if not isinstance(backend, ArtemisBackend):
            raise CommandError(f"TASKS[{options['backend']!r}] is a {type(backend).__name__}, not an ArtemisBackend")
        queues = options["queue"] or sorted(backend.queues)
        if unknown := sorted(set(queues) - backend.queues) if backend.queues else []:
            raise CommandError(
                f"TASKS[{options['backend']!r}]['QUEUES'] has no {', '.join(unknown)}; "
                f"it has {', '.join(sorted(backend.queues))}"
            )
        if not queues:
            raise CommandError(f"TASKS[{options['backend']!r}]['QUEUES'] is empty: name queues with --queue")
        worker = Worker(backend, queues)

        def stop(*_: object) -> None:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)  # the second time it does not wait
            worker.stop()

        for number in _SIGNALS:
            signal.signal(number, stop)
        self.stdout.write(f"Worker {worker.id} takes tasks from {', '.join(queues)}. Stop it with CTRL-C.")
        self.stdout.flush()
        try:
            worker.run()
        except RefusedError as error:
            raise CommandError(str(error)) from None
