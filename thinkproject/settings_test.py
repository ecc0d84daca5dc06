"""The few differences for tests: a throw-away data directory, and the database that `TEST_DATABASE` names.

`TEST_DATABASE=sqlite` (default) uses a file, so that tests may cross threads. `TEST_DATABASE=postgres` starts the
server of a wheel once; processes of the same run (pytest-xdist) share it.
"""

import os
import secrets
import tempfile
from pathlib import Path

FAST_DIR = "/dev/shm"  # noqa: S108 - memory where there is some; tests/conftest.py makes a private directory
_base = FAST_DIR if Path(FAST_DIR).is_dir() and os.access(FAST_DIR, os.W_OK) else tempfile.gettempdir()
TEST_DIR = Path(_base) / f"thk{secrets.token_hex(6)}"  # made and removed by tests/conftest.py

for _name in [name for name in os.environ if name.startswith(("THINK_", "OPENAI_"))]:
    del os.environ[_name]  # a developer's own settings must not change what is tested
for _name in ("REDIS_URL", "ALLOWED_HOSTS", "PORT"):
    os.environ.pop(_name, None)
os.environ["SECRET_KEY"] = "tests-only"
os.environ["THINK_FIBER_RECOVERY_DEBOUNCE_SECONDS"] = "0"  # tests lose workers at once, one after the other
os.environ["THINK_TITLE_MODEL"] = "none"  # scripted models answer the conversation, and nothing else
os.environ["THINK_DATA_DIR"] = str(TEST_DIR)
os.environ["THINK_MADE_UP_LANGUAGES"] = "1"  # tests switch to them

if os.environ.get("TEST_DATABASE", "sqlite") == "postgres":
    from thinkproject.postgres_for_tests import shared_postgres_url

    os.environ["DATABASE_URL"] = shared_postgres_url()
else:
    os.environ.pop("DATABASE_URL", None)

from thinkproject.settings import *  # noqa: E402, F403 - a settings module is its names
from thinkproject.settings import CELERY_BROKER_TRANSPORT_OPTIONS, DATABASES  # noqa: E402 - as above

ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_BROKER_TRANSPORT_OPTIONS = {**CELERY_BROKER_TRANSPORT_OPTIONS, "max_retries": 0}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(TEST_DIR / "test.sqlite3")}
