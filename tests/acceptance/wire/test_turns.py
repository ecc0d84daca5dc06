"""Turns over real sockets: web server, worker, Redis and provider are processes."""

import pytest

from tests.acceptance.product import Product
from tests.acceptance.wire.address import socket_url
from tests.acceptance.wire.client import RESPONSE, Tab


@pytest.mark.smoke
async def test_socket_chat(shared_product: Product) -> None:
    async with (
        Tab.open(socket_url(shared_product, "chat")) as tab,
        Tab.open(socket_url(shared_product, "chat")) as other,
    ):
        await tab.wait(lambda f: f["type"] == "cf_agent_mcp_servers")
        await other.wait(lambda f: f["type"] == "cf_agent_mcp_servers")
        assert tab.kinds() == ["cf_agent_chat_messages", "cf_agent_identity", "cf_agent_mcp_servers"]
        request = await tab.chat("say: Hello from the provider.")
        done = await tab.done(request)
        assert done["outcome"] == "completed"
        assert tab.text(request) == "Hello from the provider."
        kinds = [f["type"] for f in tab.frames if f["type"] == RESPONSE or f["type"] == "cf_agent_chat_messages"]
        assert kinds[-2:] == ["cf_agent_chat_messages", RESPONSE]
        assert [m["role"] for m in tab.transcript()] == ["user", "assistant"]
        assert sum(1 for f in tab.frames if f.get("done")) == 1
        await other.done(request)
        assert other.text(request) == "Hello from the provider."
        assert other.kinds()[3] == "cf_agent_chat_messages"
        assert other.offsets(request) == tab.offsets(request) == sorted(set(tab.offsets(request)))


@pytest.mark.smoke
async def test_reconnect_mid_stream_loses_and_repeats_nothing(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "reconnect")) as tab:
        request = await tab.chat("stream 120 words at 60/s")
        await tab.wait(lambda f: f.get("seq", 0) > 20)
        async with Tab.open(socket_url(shared_product, "reconnect")) as late:
            await late.wait(lambda f: f["type"] == "cf_agent_stream_resuming")
            assert "cf_agent_chat_messages" not in late.kinds()
            await late.send(type="cf_agent_stream_resume_request", probeId="p1")
            await late.wait(lambda f: f.get("probeId") == "p1")
            await late.send(type="cf_agent_stream_resume_ack", id=request)
            await late.wait(lambda f: f.get("replayComplete") is True)
            await late.done(request)
            await tab.done(request)
            assert late.offsets(request) == tab.offsets(request)
            assert late.text(request) == tab.text(request) != ""


@pytest.mark.smoke
async def test_cancel_mid_stream_keeps_the_partial(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "cancel")) as tab:
        request = await tab.chat("stream 500 words at 50/s")
        await tab.wait(lambda f: f.get("seq", 0) > 10)
        await tab.send(type="cf_agent_chat_request_cancel", id=request)
        done = await tab.done(request, seconds=5)
        assert done["outcome"] == "aborted"
        partial = tab.text(request)
        assert tab.transcript()[-1]["parts"][-1]["text"] == partial
        second = await tab.chat("say: still here")
        assert (await tab.done(second))["outcome"] == "completed"
        ends = [frame for frame in tab.frames if frame.get("id") == request and frame.get("done")]
        assert ends == [done], "a stop is answered once"


async def test_kill_the_worker_mid_answer(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "killed-worker")) as tab:
        request = await tab.chat("stream 200 words at 50/s")
        await tab.wait(lambda f: f.get("seq", 0) > 40)
        shared_product.workers[0].restart()
        done = await tab.done(request, seconds=60)
        assert done["outcome"] == "completed"
        offsets = tab.offsets(request)
        assert offsets == list(range(len(offsets)))
        text = tab.text(request)
        assert len(text.split()) == 200
        chunks = tab.chunks(request)
        [cut] = [at for at, chunk in enumerate(chunks) if chunk["type"] == "data-think-resumed"]
        before_cut = "".join(chunk["delta"] for chunk in chunks[:cut] if chunk["type"] == "text-delta")
        assert 0 < len(before_cut) < len(text)
        assert chunks[cut]["data"]["offset"] == len(before_cut)
        parts = tab.transcript()[-1]["parts"]
        assert [part["text"] for part in parts if part["type"] == "text"] == [text]
        assert parts[-1] == chunks[cut], "the seam stands behind the text that it marks"
