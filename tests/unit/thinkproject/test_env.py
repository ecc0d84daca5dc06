"""Environment variables are understood, or refused in one line."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from thinkproject.config import env
from tools_app.sandbox.conf import SandboxLimits


@pytest.fixture(autouse=True)
def _same_variables() -> Iterator[None]:
    before = dict(env.variables)
    yield
    env.variables.clear()
    env.variables.update(before)


@pytest.mark.parametrize("word", ["1", "true", "Yes", "ON"])
def test_a_switch_is_on(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("THINK_X", word)
    assert env.env_bool("THINK_X", default=False, doc="x") is True


def test_an_unknown_word_for_a_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINK_X", "enabled")
    with pytest.raises(env.EnvError, match="THINK_X is 'enabled'"):
        env.env_bool("THINK_X", default=False, doc="x")


@pytest.mark.parametrize("text", ["-1", "70000", "eight", "8.5"])
def test_a_number_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("THINK_X", text)
    with pytest.raises(env.EnvError, match="THINK_X"):
        env.env_int("THINK_X", 1, doc="x", maximum=65535)


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINK_X", "  ")
    assert env.env_int("THINK_X", 7, doc="x") == 7


def test_a_secret_comes_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n", encoding="utf-8")
    monkeypatch.setenv("THINK_X_FILE", str(tmp_path / "key"))
    assert env.env_secret("THINK_X", doc="x") == "s3cret"


def test_a_secret_given_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THINK_X", "one")
    monkeypatch.setenv("THINK_X_FILE", str(tmp_path / "key"))
    with pytest.raises(env.EnvError, match="both set") as caught:
        env.env_secret("THINK_X", doc="x")
    assert "one" not in str(caught.value).replace("one of", "")


def test_a_secret_file_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THINK_X_FILE", str(tmp_path / "none"))
    with pytest.raises(env.EnvError, match="cannot be read"):
        env.env_secret("THINK_X", doc="x")


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [
        ("12", 1, 12),
        ("1.5", 1.0, 1.5),
        ("off", True, False),
        ("a, b,,c", ("x",), ("a", "b", "c")),
        ("a,b", ["x"], ["a", "b"]),
        ('{"a": {"b": 1}}', {}, {"a": {"b": 1}}),
        ("plain", "", "plain"),
    ],
)
def test_a_declared_setting_is_understood_by_its_default(text: str, default: object, value: object) -> None:
    assert env.app_values({"THINK_X": default}, {"THINK_X": text}) == {"THINK_X": value}


@pytest.mark.parametrize(("text", "default"), [("x", 1), ("x", 1.0), ("x", True), ("[]", {}), ("{", {})])
def test_a_declared_setting_of_another_type_is_refused(text: str, default: object) -> None:
    with pytest.raises(env.EnvError, match="THINK_X"):
        env.app_values({"THINK_X": default}, {"THINK_X": text})


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    with pytest.raises(env.EnvError, match=r"THINK_MODLE .* Did you mean THINK_MODEL\?"):
        env.refuse_unknown(["THINK_MODEL", "THINK_APPS"], ["PATH", "THINK_MODLE"])


def test_a_removed_setting_says_what_to_do_instead() -> None:
    with pytest.raises(
        env.EnvError, match=r"THINK_SANDBOX_RUNS is not a setting any more\. Set THINK_SANDBOX='\{\"runs"
    ):
        env.refuse_unknown(["THINK_SANDBOX"], ["THINK_SANDBOX_RUNS"])


def test_limits_in_one_object_keep_what_they_do_not_name() -> None:
    given = {"THINK_SANDBOX": '{"runs": 3, "seconds": 90}'}
    assert env.app_values({"THINK_SANDBOX": SandboxLimits()}, given) == {
        "THINK_SANDBOX": SandboxLimits(runs=3, seconds=90)
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"run": 3}', r"THINK_SANDBOX has no 'run'\. It has runs, runs_per_user"),
        ('{"runs": 2.5}', r"THINK_SANDBOX has 2\.5 for 'runs'; expected a whole number above 0\."),
        ('{"seconds": "long"}', r"THINK_SANDBOX has 'long' for 'seconds'; expected a number above 0\."),
        ('{"runs": true}', "expected a whole number above 0"),
        ('{"seconds": NaN}', "expected a number above 0"),
        ("8", "expected a JSON object"),
    ],
)
def test_limits_that_are_none_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(env.EnvError, match=words):
        env.app_values({"THINK_SANDBOX": SandboxLimits()}, {"THINK_SANDBOX": text})


def test_keys_of_others_are_nobodys_business() -> None:
    env.refuse_unknown(["THINK_MODEL"], ["PATH", "MODLE", "THINKING", "THINK_MODEL"])


def test_a_kept_secret_is_made_once_and_private(tmp_path: Path) -> None:
    first = env.kept_secret(tmp_path / "data" / "key")
    assert len(first) > 40
    assert env.kept_secret(tmp_path / "data" / "key") == first
    assert stat.S_IMODE((tmp_path / "data" / "key").stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "data") == ["key"]
