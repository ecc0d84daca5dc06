"""Nothing that a page does reaches an address that is not allowed, whichever way it tries."""

import asyncio
import base64
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.unit.tools_app.browser.conftest import LOOPBACK, Browser, Site, browser_of, context, serving
from tools_app.browser.errors import BrowserGone
from tools_app.browser.proxy import LOGIN_URL, USER, NetworkPolicy, Proxy
from tools_app.browser.session import open_session
from tools_app.browser.tools import create_browser_tools
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.urls import parse_rules

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def udp() -> AsyncIterator[Any]:
    """A port that notes every datagram. It is loopback, so what reaches it passed no proxy."""

    class Noting(asyncio.DatagramProtocol):
        def __init__(self) -> None:
            self.received: list[bytes] = []
            self.port = 0

        def datagram_received(self, data: bytes, _address: Any) -> None:
            self.received.append(data)

    transport, noting = await asyncio.get_running_loop().create_datagram_endpoint(Noting, ("127.0.0.1", 0))
    noting.port = transport.get_extra_info("sockname")[1]
    yield noting
    transport.close()


WAYS = """
<img src="{to}/img"><img srcset="{to}/srcset 1x"><script src="{to}/script"></script>
<link rel=stylesheet href="{to}/css"><link rel=icon href="{to}/icon"><link rel=prefetch href="{to}/prefetch">
<link rel=preload as=fetch href="{to}/preload"><link rel=preconnect href="{to}"><link rel=dns-prefetch href="{to}">
<link rel=modulepreload href="{to}/modulepreload"><link rel=manifest href="{to}/manifest">
<iframe src="{to}/iframe"></iframe><iframe srcdoc="<img src='{to}/srcdoc'>"></iframe>
<object data="{to}/object"></object>
<embed src="{to}/embed"><video src="{to}/video" poster="{to}/poster"></video><audio src="{to}/audio"></audio>
<input type=image src="{to}/input"><svg><image href="{to}/svg"/><use href="{to}/use#a"/></svg>
<style>@import "{to}/import"; body {{ background: url("{to}/background") }}
@font-face {{ font-family: f; src: url("{to}/font") }} p {{ font-family: f }}</style><p>text</p>
<form id=form action="{to}/form" method=post target=formframe><input name=a></form><iframe name=formframe></iframe>
<a id=ping href="#" ping="{to}/ping">ping</a>
<script type=speculationrules>{{"prefetch": [{{"source": "list", "urls": ["{to}/speculation"]}}]}}</script>
<script>
  const to = "{to}", ws = to.replace("http", "ws");
  const quietly = (work) => {{ try {{ Promise.resolve(work()).catch(() => 0) }} catch {{}} }};
  quietly(() => fetch(to + "/fetch", {{ mode: "no-cors" }}));
  quietly(() => fetch("{site}/redirects?" + to + "/redirected", {{ mode: "no-cors" }}));
  quietly(() => fetch(to + "/keepalive", {{ mode: "no-cors", method: "POST", keepalive: true }}));
  quietly(() => {{ const r = new XMLHttpRequest(); r.open("GET", to + "/xhr"); r.send() }});
  quietly(() => navigator.sendBeacon(to + "/beacon", "x"));
  quietly(() => new WebSocket(ws + "/socket"));
  quietly(() => new EventSource(to + "/events"));
  quietly(() => import(to + "/module"));
  quietly(() => new Worker(URL.createObjectURL(new Blob(["fetch('" + to + "/worker', {{ mode: 'no-cors' }});" +
    "importScripts('" + to + "/importscripts')"]))));
  quietly(() => new SharedWorker(URL.createObjectURL(new Blob(["fetch('" + to + "/shared', {{ mode: 'no-cors' }})"]))));
  quietly(() => navigator.serviceWorker.register("/sw.js"));
  quietly(() => form.submit());
  quietly(() => ping.click());
  quietly(() => window.open(to + "/window"));
  quietly(() => new WebTransport(to.replace("http", "https") + "/transport"));
  quietly(() => {{
    const peer = new RTCPeerConnection({{ iceServers: [{{ urls: "stun:127.0.0.1:{udp}" }},
      {{ urls: "turn:127.0.0.1:{udp}", username: "u", credential: "c" }},
      {{ urls: "turn:127.0.0.1:{port}?transport=tcp", username: "u", credential: "c" }}] }});
    peer.createDataChannel("d");
    return peer.createOffer().then((offer) => peer.setLocalDescription(offer));
  }});
  quietly(() => new Image().src = to.replace("http:", "https:") + "/tls");
</script>
"""


async def redirects(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": request.query_string})


async def test_no_way_leads_out_of_a_page(browser: Browser, site: Site, elsewhere: Site, udp: Any) -> None:
    script = f"fetch('{elsewhere.url('/serviceworker')}', {{ mode: 'no-cors' }})"
    site.put("/sw.js", text=script, content_type="text/javascript")
    site.answers["/redirects"] = redirects
    page = WAYS.format(to=elsewhere.url(""), site=site.url(""), udp=udp.port, port=elsewhere.port)
    answer = await browser("markdown", url=site.page("/ways", page))
    assert "[ping]" in answer["markdown"]
    refused = "\n".join(answer["refused"])
    tried = ("/img", "/script", "/fetch", "/redirected", "/xhr")
    for way in tried:  # it was the proxy that refused them
        assert elsewhere.url(way) in refused
    assert f"127.0.0.1:{elsewhere.port}" in re.split(r"[\n]", refused)  # a tunnel: of the web socket, or of TLS
    assert elsewhere.paths == []
    assert udp.received == []


async def test_every_way_does_lead_somewhere_where_it_is_allowed(chromium: str, site: Site) -> None:
    async for allowed in serving():
        page = WAYS.format(to=allowed.url(""), site=site.url(""), udp=9, port=9)
        site.answers["/redirects"] = redirects
        await browser_of(site, allowed)("markdown", url=site.page("/ways-allowed", page))
        assert {"/img", "/script", "/iframe", "/fetch", "/redirected", "/socket", "/worker"} <= set(allowed.paths)


@pytest.mark.parametrize("place", ["http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "elsewhere"])
async def test_a_page_that_redirects_elsewhere_is_an_error(
    browser: Browser, site: Site, elsewhere: Site, place: str
) -> None:
    place = elsewhere.url("/secret") if place == "elsewhere" else place
    site.put("/moved", status=302, headers={"Location": place})
    with pytest.raises(FetchFailed):
        await browser("markdown", url=site.url("/moved"))
    script = site.page("/scripted", f"<script>location = '{place}'</script>")
    meta = site.page("/meta", f"<meta http-equiv=refresh content='0;url={place}'>")
    for url in (script, meta):
        with contextlib.suppress(FetchFailed):  # if it had left before it was read
            assert (await browser("links", url=url))["links"] == []
    assert elsewhere.paths == []


PRIVATE = "http://169.254.169.254/ http://[::1]/ http://10.0.0.1/ http://0.0.0.0/ http://metadata.internal/"


async def test_private_addresses_are_refused_even_if_every_host_is_allowed(chromium: str) -> None:
    async def private(_host: str) -> Sequence[str]:
        return ["169.254.169.254"]

    [_, _, markdown, *_] = create_browser_tools(["http://*", "*"], resolver=private, session="reuse")
    browser = Browser({markdown.name: markdown})
    for url in PRIVATE.split():
        with pytest.raises(FetchFailed, match="not public"):
            await browser("markdown", url=url)


async def test_a_name_that_changes_its_address_leads_nowhere(chromium: str, site: Site) -> None:
    names: list[str] = []

    async def rebinding(host: str) -> Sequence[str]:
        names.append(host)
        return ["127.0.0.1"] if len(names) == 1 else ["127.0.0.2"]

    body = "<p id=p></p><script>fetch('/again').then(() => 'read', () => 'refused').then((t) => p.append(t))</script>"
    site.page("/rebind", body)
    site.paths.clear()
    browser = browser_of(site, host="rebind.test", resolver=rebinding, allow_private=["127.0.0.1/32"])
    answer = await browser("markdown", url=site.url("/rebind", host="rebind.test"))
    assert answer["markdown"] == "refused"
    assert answer["refused"] == [site.url("/again", host="rebind.test")]
    assert site.paths == ["/rebind"]
    assert set(names) == {"rebind.test"}  # and the browser resolved none by itself


@pytest.fixture
def untrusted(tmp_path: Path) -> ssl.SSLContext:
    """The certificate of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")]), datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    signed = made.add_extension(names, critical=False).sign(key, hashes.SHA256())
    pem = tmp_path / "server.pem"
    plain = serialization.NoEncryption()
    written = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    pem.write_bytes(written + signed.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


async def test_a_certificate_that_is_not_trusted_is_refused(chromium: str, untrusted: ssl.SSLContext) -> None:
    async for safe in serving(untrusted):
        [_, _, markdown, *_] = create_browser_tools([f"https://127.0.0.1:{safe.port}"], allow_private=LOOPBACK)
        browser = Browser({markdown.name: markdown})
        with pytest.raises(FetchFailed, match="ERR_CERT_AUTHORITY_INVALID"):  # so the tunnel did lead there
            await browser("markdown", url=f"https://127.0.0.1:{safe.port}/")
        assert safe.paths == []


async def test_what_a_page_offers_to_save_is_kept_nowhere(browser: Browser, site: Site) -> None:
    headers = {"Content-Disposition": "attachment; filename=kept.txt"}
    site.put("/saved", body=b"kept" * 100, headers=headers, content_type="application/octet-stream")
    with pytest.raises(FetchFailed, match="ERR_ABORTED"):
        await browser("markdown", url=site.url("/saved"))
    click = "<a id=a href='/saved' download>save</a><script>a.click()</script>"
    assert "save" in (await browser("markdown", url=site.page("/saves", click)))["markdown"]


async def test_a_browser_that_has_used_up_its_bytes_is_ended(chromium: str, site: Site, settings: Any) -> None:
    settings.THINK_BROWSER = {"network_bytes": 1_000_000}
    url = site.put("/large", body=b"x" * 3_000_000, content_type="text/plain")
    browser = browser_of(site, session="reuse")
    whose = context(instance="bytes")
    with pytest.raises(BrowserGone, match="used up its 1000000 bytes"):
        await browser("links", url=url, within=whose)
    answer = await browser("markdown", url=site.page("/small", "small"), within=whose)  # in a new one
    assert answer["markdown"] == "small"


# the proxy itself


async def asked(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


@pytest_asyncio.fixture(loop_scope="module")
async def checking_proxy(site: Site) -> AsyncIterator[tuple[Proxy, int]]:
    policy = NetworkPolicy(rules=parse_rules([f"http://127.0.0.1:{site.port}"]), private=[_network()])
    made = Proxy(policy)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    await made.serve(listener)
    yield made, listener.getsockname()[1]
    await made.close()


def _network() -> Any:
    return ipaddress.ip_network(LOOPBACK[0])


def authorised(proxy: Proxy, head: str, body: bytes = b"") -> bytes:
    credential = base64.b64encode(f"{USER}:{proxy.password}".encode()).decode()
    return f"{head}\r\nProxy-Authorization: Basic {credential}\r\n\r\n".encode() + body


async def test_the_proxy_needs_the_credential_of_its_own_browser(checking_proxy: tuple[Proxy, int], site: Site) -> None:
    made, port = checking_proxy
    site.put("/open", text="open")
    head = f"GET {site.url('/open')} HTTP/1.1"
    other = Proxy(made.policy)
    site.paths.clear()
    for request in (
        f"{head}\r\n\r\n".encode(),
        authorised(other, head),
        f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\n\r\n".encode(),
    ):
        assert (await asked(port, request)).startswith(b"HTTP/1.1 407 ")
    assert site.paths == []
    assert (await asked(port, authorised(made, head))).endswith(b"\r\n\r\nopen")
    assert (await asked(port, authorised(made, f"GET {LOGIN_URL} HTTP/1.1"))).endswith(b"ok")


async def test_the_proxy_passes_on_neither_its_credential_nor_a_host_that_is_not_the_address(
    checking_proxy: tuple[Proxy, int], site: Site
) -> None:
    seen: list[dict[str, str]] = []

    async def note(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(dict(request.headers))
        return web.Response(text=(await request.read()).decode())

    site.answers["/noted"] = note
    head = f"POST {site.url('/noted')} HTTP/1.1\r\nHost: metadata.internal\r\nX-A: b\r\nContent-Length: 4"
    answer = await asked(checking_proxy[1], authorised(checking_proxy[0], head, b"body GET /second HTTP/1.1\r\n\r\n"))
    assert answer.endswith(b"\r\n\r\nbody")
    [headers] = seen
    assert headers["Host"] == f"127.0.0.1:{site.port}"
    assert headers["X-A"] == "b"
    assert not any(name.lower().startswith("proxy-") for name in headers)


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT 127.0.0.1:1 HTTP/1.1",
        "CONNECT 169.254.169.254:80 HTTP/1.1",
        "CONNECT [::1]:{port} HTTP/1.1",
        "CONNECT 127.1:{port} HTTP/1.1",
        "CONNECT localhost:{port} HTTP/1.1",
        "CONNECT user@127.0.0.1:{port} HTTP/1.1",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}",
        "GET http://127.0.0.1:{port}\\@10.0.0.1/ HTTP/1.1",
        "GET http://127.0.0.1:1/ HTTP/1.1",
        "GET ftp://127.0.0.1:{port}/ HTTP/1.1",
        "GET http://127.0.0.1:{port}/ HTTP/1.1 extra",
        "POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked",
        "POST http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: 99999999999",
        "POST http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: -1",
        "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nX-Long: " + "x" * 100_000,
        "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nno header",
    ],
)
async def test_requests_that_are_odd_or_lead_elsewhere_are_dropped(
    checking_proxy: tuple[Proxy, int], site: Site, head: str
) -> None:
    site.paths.clear()
    request = authorised(checking_proxy[0], head.replace("{port}", str(site.port)))
    with contextlib.suppress(ConnectionError):
        assert await asked(checking_proxy[1], request) == b""
    assert site.paths == []


async def test_nothing_else_on_this_machine_reaches_the_proxy_of_a_browser(chromium: str, site: Site) -> None:
    session = await open_session(NetworkPolicy(rules=parse_rules(["example.com"])))
    try:
        assert session.chrome is not None
        if not session.chrome.walls.is_contained:
            pytest.skip("this machine makes no namespaces")
        port = session.chrome.listener.getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    finally:
        await session.close()
