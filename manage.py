#!/usr/bin/env python
"""Run a management command of the project. An environment that cannot be followed is one line, not a traceback."""

import os
import sys

try:
    from django.core.management import execute_from_command_line

    from thinkproject.config.env import EnvError
except ImportError as error:
    if error.name != "django":
        raise
    sys.exit("error: this Python has no Django. In a checkout: .venv/bin/python manage.py (`make run` makes .venv).")

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    try:
        execute_from_command_line(sys.argv)
    except EnvError as error:
        sys.exit(f"error: {error}")
