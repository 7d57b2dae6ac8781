"""Order four things, and wait for them."""

import time
from datetime import timedelta

from django.core.management.base import BaseCommand
from django.utils import timezone

from kitchen.tasks import cook, fetch, pour


class Command(BaseCommand):
    def handle(self, **options):
        """Order."""
        results = [
            cook.enqueue("soup"),
            cook.using(run_after=timezone.now() + timedelta(seconds=1)).enqueue("toast"),  # the broker keeps it
            pour.enqueue("tea"),
            fetch.enqueue("milk"),
        ]
        for result in results:
            while result.status != "SUCCESSFUL":
                time.sleep(0.1)
                result.refresh()
            self.stdout.write(result.return_value)
