"""Django's commands for the kitchen."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kitchen.settings")
execute_from_command_line(sys.argv)
