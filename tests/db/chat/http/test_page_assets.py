"""What the pages name: hashed files of the build, preloads with the nonce of the policy, never names of yesterday."""

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.utils.translation import override
from pytest_django import Settings

from chat.http import assets

ENTRY = {"file": "main.0123456789ab.js", "preload": ["chunk.aaaaaaaaaaaa.js", "chunk.bbbbbbbbbbbb.js"]}


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "manifest.json"
    write(path, {"main.js": ENTRY})
    monkeypatch.setattr(assets, "MANIFEST", path)
    yield path
    assets._warn_once.cache_clear()


def write(path: Path, entries: object) -> None:
    beside = path.with_name("new")
    beside.write_text(json.dumps({"entries": entries, "files": []}))
    os.replace(beside, path)


def render(text: str, **context: object) -> str:
    return Template("{% load page_assets %}" + text).render(Context(context))


def test_modules_are_loaded_in_one_round_trip(manifest: Path, settings: Settings) -> None:
    settings.STATIC_URL = "https://cdn.example/s/"
    html = render('{% page_script "main.js" %}')
    assert re.findall(r'<link rel="modulepreload" href="([^"]+)">', html) == [
        "https://cdn.example/s/think/chunk.aaaaaaaaaaaa.js",
        "https://cdn.example/s/think/chunk.bbbbbbbbbbbb.js",
    ]
    assert html.endswith('<script type="module" src="https://cdn.example/s/think/main.0123456789ab.js"></script>')


def test_what_is_loaded_carries_the_nonce(manifest: Path) -> None:
    request = RequestFactory().get("/")
    request.csp_nonce = 'a"b'  # type: ignore[attr-defined]  # django-csp sets it
    html = render('{% page_script "main.js" %}', request=request)
    assert html.count(' nonce="a&quot;b"') == 3


@pytest.mark.parametrize(("language", "named"), [("de", True), ("de-at", True), ("en", False), ("fr", False)])
def test_the_texts_of_a_language_are_loaded_with_the_script(language: str, named: bool, manifest: Path) -> None:
    entry = {"file": "messages-de.0123456789ab.js", "preload": ["messages-de-later.aaaaaaaaaaaa.js"]}
    write(manifest, {"main.js": ENTRY, "messages-de.js": entry})
    with override(language):
        text = render("{% page_messages %}")
    if not named:
        assert text == ""
        return
    assert re.findall(r'<link rel="modulepreload" href="[^"]*/think/([^"]+)">', text) == [entry["file"]]
    listed = re.findall(r'<meta name="messages" content="[^"]*/think/([^"]+)">', text)
    assert listed == [entry["file"], *entry["preload"]]


def test_a_page_after_a_build_names_the_new_files(manifest: Path) -> None:
    assert render('{% asset "main.js" %}').endswith("think/main.0123456789ab.js")
    write(manifest, {"main.js": {"file": "main.ffffffffffff.js", "preload": []}})
    assert render('{% asset "main.js" %}').endswith("think/main.ffffffffffff.js")


def test_a_misspelt_name_is_an_error(manifest: Path) -> None:
    with pytest.raises(KeyError):
        render('{% page_style "ap.css" %}')


def test_without_a_build_the_log_says_it_once(manifest: Path, caplog: pytest.LogCaptureFixture) -> None:
    manifest.unlink()
    with caplog.at_level(logging.WARNING, logger="chat.http.assets"):
        texts = [render('{% page_script "main.js" %}{% page_style "app.css" %}{% asset "icon.svg" %}') for _ in "ab"]
    assert texts == ["", ""]
    assert [record.message for record in caplog.records] == [
        "the page's scripts and styles are missing; run `python static/build.py`"
    ]


@pytest.mark.django_db
def test_the_pages_name_files_that_are_there(client: Client) -> None:
    page = client.get("/sign-in/")
    names = re.findall(r'(?:src|href)="/static/think/([^"]+)"', page.content.decode())
    assert {name.partition(".")[0] for name in names} >= {"app", "icon", "simple"}
    for name in names:
        assert re.fullmatch(r"\w+\.[0-9a-f]{12}\.(js|css|svg)", name)
        assert (assets.MANIFEST.parent / name).is_file()
    nonces = set(re.findall(r'nonce="([^"]+)"', page.content.decode()))
    assert len(nonces) == 1
    assert f"'nonce-{nonces.pop()}'" in page.headers["Content-Security-Policy"]


def test_modules_resolve_below_a_host_s_own_hashing_storage(tmp_path: Path, settings: Settings) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    html = render('{% page_script "main.js" %}{% page_style "app.css" %}')
    names = re.findall(r'(?:src|href)="/static/([^"]+)"', html)
    assert len(names) >= 3
    for name in names:
        assert (tmp_path / name).is_file()
    [entry] = [name for name in names if name.startswith("think/main.")]
    imported = re.findall(r"""(?:from|import)["']\./([\w.-]+)["']""", (tmp_path / entry).read_text())
    assert imported
    assert {f"think/{name}" for name in imported} <= set(names)  # the very addresses that were preloaded
