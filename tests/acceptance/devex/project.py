"""A Django project of a user's own, written into a folder, that has taken the agents in below a prefix.

It finds them in this checkout, or where a wheel made of it was installed.
`docs/howto/use-in-your-project.md` shows the same files; a test compares them.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

SETTINGS = """\
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "host"
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1"]
AUTH_USER_MODEL = "people.Person"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "people",
    "channels",
    "ninja",
    "fibers",
    "sessions_app",
    "tools_app",
    "chat",
    "helpdesk",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "host.urls"
ASGI_APPLICATION = "host.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "db.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"},
        "TEST": {"NAME": BASE_DIR / "test.sqlite3"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
LOGIN_URL = "login"
USE_TZ = True
"""
URLS = """\
from django.contrib import admin
from django.http import HttpResponse
from django.urls import include, path

from chat.http.api.router import build_api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", lambda request: HttpResponse("the host's own page")),
    path("desk/api/", build_api().urls),
    path("desk/", include("chat.urls_api")),
    path("desk/", include("chat.urls")),
]
"""
ASGI = """\
import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "host.settings")
django_application = get_asgi_application()

from chat.routing import websocket_urlpatterns

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": URLRouter([re_path(r"^desk/", URLRouter(websocket_urlpatterns))]),
    }
)
"""
LAYER = 'CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}\n'
MANAGE = """\
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "host.settings")
execute_from_command_line(sys.argv)
"""
PEOPLE = """\
import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class PersonManager(BaseUserManager):
    def create_user(self, email, password=None, **fields):
        person = self.model(email=email, **fields)
        person.set_password(password)
        person.save()
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    objects = PersonManager()
    USERNAME_FIELD = "email"
"""
AGENTS = """\
from chat.llm.scripted import ScriptedModel
from chat.think import Think


class HelpDesk(Think):
    def get_model(self):
        return ScriptedModel("say: Hello from the host.")
"""
SIGN_IN = """\
import json

import django

django.setup()
from django.contrib.auth import get_user_model
from django.test import Client

from chat.access.api_tokens import create_token

ann = get_user_model().objects.get(email="ann@example.com")
client = Client()
client.force_login(ann)
print(json.dumps({"cookie": client.cookies["sessionid"].value, "token": create_token(ann, name="test")[1]}))
"""


@dataclass
class Project:
    """The project in its folder. `library`: where the agents are imported from."""

    folder: Path
    library: Path = ROOT

    @property
    def environ(self) -> dict[str, str]:
        """Nothing of ours but the path."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "PYTHONPATH": f"{self.folder}:{self.library}", "DJANGO_SETTINGS_MODULE": "host.settings"}

    def write(self, files: Mapping[str, str]) -> None:
        """Write files below the folder."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def run(self, *words: str, lines: str = "") -> "subprocess.CompletedProcess[str]":
        """Run Python in the project."""
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.environ,
            input=lines,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def manage(self, *words: str, lines: str = "") -> str:
        """Run a command that must succeed; returns what it printed."""
        done = self.run("manage.py", *words, lines=lines)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def install_wheel(folder: Path) -> Path:
    """Do what `pip install .` does, in a copy of a checkout; returns the folder of the installed packages."""
    source, site = folder / "source", folder / "site"
    build = subprocess.run([sys.executable, str(ROOT / "static" / "build.py")], cwd=ROOT, check=False)
    assert build.returncode == 0, "the page could not be built"
    wanted = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject", "templates", "static", "requirements")
    for name in wanted:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    make = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", make, str(folder)], cwd=source, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return site


def make_project(folder: Path, library: Path = ROOT) -> Project:
    """Write it."""
    project = Project(folder, library)
    packages = {f"{name}/__init__.py": "" for name in ("host", "people", "helpdesk", "people/migrations")}
    project.write(
        packages
        | {
            "manage.py": MANAGE,
            "host/settings.py": SETTINGS + LAYER,
            "host/urls.py": URLS,
            "host/asgi.py": ASGI,
            "people/models.py": PEOPLE,
            "helpdesk/agents.py": AGENTS,
            "sign_in.py": SIGN_IN,
        }
    )
    return project
