"""What processes at rest do not hold: modules that cost megabytes and that few of them ever need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.repository import ROOT

WORKER = """
import sys, django
django.setup()
from celery.bin.worker import worker
from thinkproject.celery import app
app.loader.import_default_modules()
app.finalize()
"""
WEB = """
import sys
from thinkproject.run.server import load
load("uvicorn")
"""
BOTH = {"openai", "aiohttp", "prompt_toolkit", "daphne", "twisted", "PIL", "playwright", "mcp", "numpy"}
"""Clients of models are loaded with the first model, in a worker before it takes work; the rest when it is used."""


@pytest.mark.parametrize(
    ("code", "kept_out"),
    [(WORKER, {"thinkproject.urls", "chat.http.api.router", "uvicorn"}), (WEB, {"celery.bin.worker", "celery.beat"})],
    ids=["worker", "web"],
)
def test_a_process_at_rest_holds_no_modules_that_it_does_not_need(
    code: str, kept_out: set[str], tmp_path: Path
) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("THINK_", "CELERY_"))}
    environ |= {"DJANGO_SETTINGS_MODULE": "thinkproject.settings", "THINK_DATA_DIR": str(tmp_path)}
    print_found = f"print([name for name in {sorted(BOTH | kept_out)} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code + print_found], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
