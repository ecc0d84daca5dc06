"""The product's settings, with sign-in at an OpenID provider. `THINK_SETTINGS=assistant.settings` has them served."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from thinkproject.settings import *  # noqa: F403 - as a settings module extends another
from thinkproject.settings import TEMPLATES

ROOT_URLCONF = "assistant.urls"
_template: Any = TEMPLATES[0]
_template["DIRS"].insert(0, Path(__file__).resolve().parent / "templates")  # the example's page to sign in goes first
_template["OPTIONS"]["context_processors"].append("assistant.sign_in.provider_name")

ASSISTANT_ISSUER = os.environ.get("ASSISTANT_ISSUER", "").rstrip("/")
ASSISTANT_CLIENT_ID = os.environ.get("ASSISTANT_CLIENT_ID", "")
ASSISTANT_CLIENT_SECRET = os.environ.get("ASSISTANT_CLIENT_SECRET", "")
ASSISTANT_PROVIDER_NAME = os.environ.get("ASSISTANT_PROVIDER_NAME", "") or urlsplit(ASSISTANT_ISSUER).hostname

if not (ASSISTANT_ISSUER and ASSISTANT_CLIENT_ID and ASSISTANT_CLIENT_SECRET):
    raise ImproperlyConfigured("Set ASSISTANT_ISSUER, ASSISTANT_CLIENT_ID and ASSISTANT_CLIENT_SECRET.")
_address = urlsplit(ASSISTANT_ISSUER)
if _address.scheme != "https" and _address.hostname not in {"127.0.0.1", "localhost", "::1"}:
    raise ImproperlyConfigured("ASSISTANT_ISSUER has to begin with https://, or lead to this machine.")
