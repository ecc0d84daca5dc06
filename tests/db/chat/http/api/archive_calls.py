"""Archives through the API, as tests bring them in."""

from typing import Any

from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile

from fibers.testing import run_until_idle
from tests.db.chat.conftest import ApiClient

Body = dict[str, Any]


def work() -> None:
    async_to_sync(run_until_idle)(skip_delays=True)


def upload(client: ApiClient, data: bytes, name: str = "export.zip") -> Any:
    return client.http.post("/api/v1/archives", {"file": SimpleUploadedFile(name, data)})


def looked_through(client: ApiClient, data: bytes, name: str = "export.zip") -> Body:
    made = upload(client, data, name)
    assert (made.status_code, made.json()["status"]) == (201, "reading"), made.content
    work()
    found: Body = client.get(f"/archives/{made.json()['id']}").json()
    return found


def start(client: ApiClient, import_id: str) -> Any:
    return client.send("POST", f"/archives/{import_id}/start", {"agent": "assistant"})


def imported(client: ApiClient, data: bytes, name: str = "export.zip") -> Body:
    ready = looked_through(client, data, name)
    assert ready["status"] == "ready", ready
    assert start(client, ready["id"]).json()["status"] == "importing"
    work()
    found: Body = client.get(f"/archives/{ready['id']}").json()
    return found
