#!/usr/bin/env python
"""Run a management command of the project. An environment that cannot be followed is one line, not a traceback."""

import os
import sys

from django.core.management import execute_from_command_line

from thinkproject.config.env import EnvError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    try:
        execute_from_command_line(sys.argv)
    except EnvError as error:
        sys.exit(f"error: {error}")
