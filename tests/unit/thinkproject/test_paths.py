"""Where things live: the socket's path fits, and directories are private."""

import os
import stat
from pathlib import Path

import pytest

from thinkproject import connections
from thinkproject.config import paths
from thinkproject.config.env import EnvError


def test_the_socket_lies_in_the_data_directory_when_it_fits() -> None:
    assert paths.redis_socket(Path("/srv/think/var")) == Path("/srv/think/var/redis/redis.sock")


@pytest.mark.parametrize("data_dir", [Path("/" + "d" * 120), Path("/srv/my data"), Path("/srv/50%")])
def test_a_path_that_a_socket_or_url_cannot_carry_gets_a_short_one(data_dir: Path) -> None:
    socket_path = paths.redis_socket(data_dir)
    assert len(os.fsencode(socket_path)) <= paths.SOCKET_PATH_LIMIT
    assert socket_path.parent.name.startswith(f"think-{os.getuid()}-")
    assert paths.redis_socket(data_dir) == socket_path
    assert paths.redis_socket(data_dir / "other") != socket_path


def test_a_runtime_directory_that_is_too_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/" + "u" * 120)
    assert len(os.fsencode(paths.redis_socket(Path("/" + "d" * 120)))) <= paths.SOCKET_PATH_LIMIT


def test_a_private_directory_admits_no_other_user(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    paths.private_directory(tmp_path / "open")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700


def test_a_link_in_place_of_the_private_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(PermissionError):
        paths.private_directory(tmp_path / "link")


def test_sqlite_is_the_default_and_cannot_starve_writers(tmp_path: Path) -> None:
    entry = connections.database("", tmp_path, pool_size=5)
    assert entry["NAME"] == str(tmp_path / "think.sqlite3")
    assert entry["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in entry["OPTIONS"]["init_command"]
    assert not entry.get("ATOMIC_REQUESTS")


def test_postgresql_is_pooled_and_holds_no_connection_while_idle(tmp_path: Path) -> None:
    entry = connections.database("postgres://u:p@db.example/name?sslmode=require", tmp_path, pool_size=5)
    assert entry["CONN_MAX_AGE"] == 0
    assert entry["OPTIONS"]["pool"]["max_size"] == 5
    assert entry["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize("url", ["nonsense", "mysqlite://x", "mysql://u@h/db", "sqlite://"])
def test_an_address_of_no_database_we_know_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="DATABASE_URL"):
        connections.database(url, tmp_path, pool_size=5)


def test_a_refused_address_does_not_show_its_password(tmp_path: Path) -> None:
    with pytest.raises(EnvError) as caught:
        connections.database("oracel://u:hunter2@h/db", tmp_path, pool_size=5)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://h:6379/1", "redis://h:6379/1"),
        ("rediss://h/0", "rediss://h/0"),
        ("unix:///run/r.sock", "redis+socket:///run/r.sock"),
        ("unix:///run/r.sock?db=3", "redis+socket:///run/r.sock?virtual_host=3"),
    ],
)
def test_the_broker_is_the_same_redis(url: str, broker: str) -> None:
    assert connections.broker_address(connections.redis_address(url)) == broker


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_data_directory_admits_no_other_user(tmp_path: Path) -> None:
    paths.private_data_directory(tmp_path / "a" / "var")
    assert mode(tmp_path / "a" / "var") == 0o700


def test_a_data_directory_of_ours_is_closed_and_its_files_too(tmp_path: Path) -> None:
    for folder in ("logs", "redis/appendonlydir", "files/think"):
        (tmp_path / folder).mkdir(parents=True)
    names = ["secret_key", "think.sqlite3", "think.sqlite3-wal", "think.sqlite3-shm", "logs/web.log", "model.json"]
    names += ["redis/appendonlydir/1.aof", "redis/dump.rdb", "beat-schedule"]
    for name in names:
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    tmp_path.chmod(0o755)
    paths.private_data_directory(tmp_path)
    paths.close_files(tmp_path)
    assert {mode(tmp_path / name) for name in names} == {0o600}
    assert {mode(path) for path in (tmp_path, tmp_path / "logs", tmp_path / "redis/appendonlydir")} == {0o700}
    assert mode(tmp_path / "files") == 0o700


def test_a_directory_that_is_not_ours_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").touch()
    (tmp_path / "home").chmod(0o755)
    paths.private_data_directory(tmp_path / "home")
    assert mode(tmp_path / "home") == 0o755
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    paths.private_data_directory(tmp_path / "shared")
    assert mode(tmp_path / "shared") == 0o1777


def test_closing_follows_no_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "elsewhere").chmod(0o644)
    (tmp_path / "var" / "logs").mkdir(parents=True)
    (tmp_path / "var" / "logs" / "web.log").symlink_to(tmp_path / "elsewhere")
    paths.close_files(tmp_path / "var")
    assert mode(tmp_path / "elsewhere") == 0o644
