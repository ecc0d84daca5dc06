"""Every process is killed between two messages: the history that a person chose is still the current one."""

import uuid

import httpx

from tests.acceptance.product import Product


def test_the_current_history_survives_the_end_of_every_process(shared_product: Product) -> None:
    product, name = shared_product, f"kept-{uuid.uuid4().hex[:8]}"
    headers = {"Authorization": f"Bearer {product.token('alice')}"}

    def ask(method: str, path: str, body: object = None) -> httpx.Response:
        reply = httpx.request(method, product.url(path), headers=headers, json=body, timeout=60)
        assert reply.status_code < 300, reply.text
        return reply

    def say(text: str) -> None:
        message = {"id": f"{name}-{text}", "role": "user", "parts": [{"type": "text", "text": f"say: {text}"}]}
        assert "[DONE]" in ask("POST", f"/agents/notebook/{name}/chat", {"messages": [message]}).text

    def shown() -> list[str]:
        messages = ask("GET", f"/agents/notebook/{name}/get-messages").json()
        return [part["text"] for each in messages for part in each["parts"] if part["type"] == "text"]

    say("one")
    [instance] = [each for each in ask("GET", "/api/v1/instances").json()["items"] if each["name"] == name]
    [first] = ask("GET", f"/api/v1/instances/{instance['id']}/sessions").json()
    ask("POST", f"/api/v1/instances/{instance['id']}/sessions", {"name": "Second"})
    say("two")
    ask("PUT", f"/api/v1/instances/{instance['id']}/session", {"session_id": first["id"]})
    for process in (*product.webs, *product.workers, product.redis):
        process.kill()
    product.revive()
    assert shown() == ["say: one", "one"]
    say("three")
    assert shown() == ["say: one", "one", "say: three", "three"]
