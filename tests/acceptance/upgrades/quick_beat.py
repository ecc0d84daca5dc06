"""Settings of a beat that has everything looked for twice a second, instead of once a minute, and logs it."""

from thinkproject.settings import *  # noqa: F403 - all of them, and two that differ
from thinkproject.settings import LOGGING as _LOGGING

CELERY_BEAT_SCHEDULE = {"sweep": {"task": "fibers.sweep", "schedule": 0.5, "options": {"expires": 60}}}
LOGGING = {**_LOGGING, "loggers": {**_LOGGING.get("loggers", {}), "celery.beat": {"level": "INFO"}}}
