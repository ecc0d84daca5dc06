"""The smallest Celery app that runs fibers."""

import os

from celery import Celery

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.acceptance.fibers.site.settings"
app = Celery("fiber-site", broker=os.environ["FIBER_SITE_REDIS"].replace("unix://", "redis+socket://"))
app.conf.imports = ["fibers.tasks"]
app.conf.task_default_queue = "fiber-site"
app.conf.worker_prefetch_multiplier = 1
