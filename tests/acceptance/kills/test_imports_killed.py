"""A process killed with signal 9 in the middle of an import: it goes on, and nothing is lost or there twice."""

import http.client
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import archives
from tests.acceptance.product import ROOT, Product, wait_for

COUNT = 60
END_SECONDS = 240.0
OF_EACH = 40
"""Messages of each conversation."""


class Importing:
    """A person with an archive of many conversations, over the API."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.token = product.token(f"importer-{uuid.uuid4().hex[:8]}")
        self.archive = b"".join(archives.long_gpt_list(COUNT))

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.product.webs[0].port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        connection.request(method, f"/api/v1{path}", body, headers)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        assert reply.status < 300, data
        return json.loads(data)

    def upload(self) -> str:
        edge = "edge-of-the-form"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="conversations.json"\r\n\r\n'
        body = head.encode() + self.archive + f"\r\n--{edge}--\r\n".encode()
        return str(self.ask("POST", "/archives", body, f"multipart/form-data; boundary={edge}")["id"])

    def found(self, import_id: str) -> Any:
        return self.ask("GET", f"/archives/{import_id}")

    def is_at(self, import_id: str, status: str) -> Any:
        found = self.found(import_id)
        assert found["status"] != "failed", found
        return found if found["status"] == status else None

    def has_seen(self, import_id: str, count: int) -> bool:
        return bool(self.found(import_id)["seen_count"] >= count)

    def start(self) -> str:
        import_id = self.upload()
        wait_for(partial(self.is_at, import_id, "ready"), what="a preview")
        self.ask("POST", f"/archives/{import_id}/start", b'{"agent": "assistant"}')
        return import_id

    def titles(self) -> list[str]:
        """Of all conversations: each has another one."""
        page = self.ask("GET", "/instances?limit=100")
        return sorted(item["title"] for item in page["items"])


@pytest.fixture
def importing(shared_product: Product) -> Iterator[Importing]:
    yield Importing(shared_product)
    shared_product.revive()


def test_a_worker_killed_while_it_imports_goes_on_where_it_was(importing: Importing) -> None:
    import_id = importing.start()
    worker = importing.product.workers[0]
    for more in (5, 20):
        wait_for(partial(importing.has_seen, import_id, more), what=f"{more} conversations")
        os.kill(worker.pid, signal.SIGKILL)
        assert worker.popen is not None
        worker.popen.wait()
        worker.start()
    done = wait_for(partial(importing.is_at, import_id, "done"), what="the end of the import", seconds=END_SECONDS)
    assert (done["report"]["added_count"], done["report"]["unreadable_count"]) == (COUNT, 0)
    assert done["report"]["message_count"] == COUNT * OF_EACH
    assert len(set(importing.titles())) == len(importing.titles()) == COUNT
    again = importing.start()
    report = wait_for(partial(importing.is_at, again, "done"), what="the second import", seconds=END_SECONDS)["report"]
    assert (report["added_count"], report["known_count"]) == (0, COUNT)
    assert len(importing.titles()) == COUNT


@pytest.mark.parametrize("has_worker", [True, False], ids=["with a worker", "without a worker"])
def test_a_command_killed_while_it_imports_is_run_again(importing: Importing, tmp_path: Path, has_worker: bool) -> None:
    product = importing.product
    if not has_worker:
        for worker in product.workers:
            worker.kill()
    name = next(name for name, person in product.people.items() if person.token == importing.token)
    path = tmp_path / "conversations.json"
    path.write_bytes(importing.archive)
    command = [sys.executable, "manage.py", "import_archive", str(path), "--user", name]
    first = subprocess.Popen(command, cwd=ROOT, env=product.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: len(importing.titles()) >= 5, what="five conversations", seconds=END_SECONDS)
    first.kill()
    first.communicate()
    done = subprocess.run(
        command, cwd=ROOT, env=product.environ, capture_output=True, text=True, check=False, timeout=END_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be read; " in done.stdout
    assert len(set(importing.titles())) == len(importing.titles()) == COUNT
