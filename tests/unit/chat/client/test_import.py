"""The client is usable where no Django is set up."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_chat_client_imports_without_settings() -> None:
    code = (
        "import chat.client; from django.conf import settings; from django.apps import apps;"
        "chat.client.ChatClient('http://127.0.0.1:1', agent='a', tools={}); print(settings.configured, apps.ready)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "False"]
