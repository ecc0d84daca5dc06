"""A Django project with nothing but fibers: the database and the Redis of the test run, given by the environment."""

import json
import os

SECRET_KEY = "tests-only"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "fibers", "tests.acceptance.fibers.site"]
DATABASES = {"default": json.loads(os.environ["FIBER_SITE_DATABASE"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
REDIS_URL = os.environ["FIBER_SITE_REDIS"]
locals().update(json.loads(os.environ.get("FIBER_SITE_SETTINGS", "{}")))
