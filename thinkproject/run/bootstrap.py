"""From a bare Python to a running product: `python3 -m thinkproject.run.bootstrap run`, used by `make run`.

Standard library only, and nothing here needs a network the second time: the environment is in step when the hash of the
lock files is. The other commands (`test`, `check`, ...) prepare the same environment with the development lock.
"""

from __future__ import annotations  # an old Python must get as far as the error about it

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import runpy
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from thinkproject.run.suite_runs import busy_loops, compiled_meanwhile, next_tenth, not_tested

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".installed.json"
REQUIREMENTS = ROOT / "requirements"
OLDEST = (3, 11)
DENO_CONFIG = ("--config", "static/deno.json")
SCRIPTS = ("static/src", "tests/unit/page", "tests/clients", "examples")
TYPED_SCRIPTS = ("static/src/app", "tests/unit/page")
SHELL_CONFIG = ("--config", "tools_app/shell/runner/deno.json")
SHELL_SCRIPTS = tuple(
    f"tools_app/shell/runner/{name}.js" for name in ("bash_runner", "bytes", "workspace_fs", "no_process")
)
NEWER = ("python3.13", "python3.12", "python3.11")
DOWNLOADS = {"uv": 22, "base": 115, "dev": 215, "local-model": 130, "examples": 1}  # megabytes, on Linux x86_64

CERTIFICATE_BUNDLES = tuple(
    Path(path)
    for path in (
        "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, Red Hat
        "/etc/ssl/ca-bundle.pem",  # SUSE
        "/etc/ssl/cert.pem",  # Alpine, macOS
    )
)

UNSTEADY = ROOT / "unsteady.txt"  # where a run of CI writes the tests that failed and passed alone
# Half of the work of the house tests: those that parse nothing which the others parse.
OTHER_HOUSE = tuple(f"tests/house/test_{name}.py" for name in ("catalogues", "skips", "suite"))
ON_POSTGRES = ("tests/db", "tests/wire", "tests/properties", "tests/acceptance/fibers", "tests/acceptance/streams")
"""Where tests depend on the database: collecting the others takes longer than many of these."""
PLAIN_RUNS = ROOT / ".pytest_cache" / "plain-runs.json"
EXIT_SETUP = 2


class SetupError(Exception):
    """The product cannot start on this machine; the message is one line with the remedy."""


def main(arguments: list[str]) -> int:
    """Run one command of the Makefile. Returns the exit code."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("run", [])
    commands = {
        "run": run,
        "test": test,
        "whole": whole,
        "test-busy": busy,
        "check": check,
        "fix": fix,
        "bench": bench,
        "bench-coding": bench_coding,
        "chaos": chaos,
    }
    commands |= {"long": long, "clients": clients, "clients-newest": clients_newest, "example": example, "clean": clean}
    if name not in commands:
        say(f"There is no command {name!r}; known are {', '.join(commands)}.")
        return EXIT_SETUP
    try:
        require_python(arguments)
        require_platform()
        return commands[name](rest)
    except SetupError as error:
        say(f"error: {error}")
        return EXIT_SETUP
    except KeyboardInterrupt:
        return 130


def say(text: str) -> None:
    """Print one line for the person who started this."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


# --- Commands ---------------------------------------------------------------------------------------------------


def run(_rest: list[str]) -> int:
    """Install missing requirements, then become the supervisor."""
    install(["base"])
    build_assets()
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execv(PYTHON, [str(PYTHON), "-m", "thinkproject.run.supervisor"])  # noqa: S606 - our own interpreter


def test(rest: list[str]) -> int:
    """Cheap tests and a tenth of the costly: on SQLite, then SQL of its own on PostgreSQL. With paths: all there."""
    if rest:
        return _tests(rest, sqlite=[], postgres=["-m", "database"])
    code = _plain_tests(os.environ.get("TEST_TENTH") or str(next_tenth(PLAIN_RUNS)))
    say("Longer runs are not part of this: make whole, make long, make chaos.")
    return code


def whole(_rest: list[str]) -> int:
    """All tests but the long ones, before a change of many parts is handed in."""
    return _plain_tests("whole")


def _plain_tests(tenth: str, *options: str) -> int:
    plain = ["--plain", "--ignore=tests/house", *options]  # `check` has just run those
    return _tests([], sqlite=plain, postgres=[*plain, *ON_POSTGRES], TEST_TENTH=tenth)


def busy(_rest: list[str]) -> int:
    """All tests but the long ones, while two loops use both cores: three times in random orders, `TEST_BUSY_RUNS`."""
    install(["dev"])
    build_assets()
    results = []
    for number in range(1, int(os.environ.get("TEST_BUSY_RUNS", "3")) + 1):
        seed, began = secrets.randbelow(2**32), time.monotonic()
        say(f"Busy run {number}, seed {seed}")
        with busy_loops(2):
            code = _plain_tests(os.environ.get("TEST_TENTH", "whole"), f"--randomly-seed={seed}")
        results.append((code, f"busy run {number}: seed {seed}, {time.monotonic() - began:.0f} s, exit code {code}"))
    for _code, line in results:
        say(line)
    return max(code for code, _line in results)


def long(rest: list[str]) -> int:
    """Every test, both databases, all clients with both AI SDKs, and more examples of each law."""
    return _tests(rest, sqlite=[], postgres=["-m", "database"], TEST_LONG="1", PYTHONDEVMODE="1")


def _tests(rest: list[str], *, sqlite: list[str], postgres: list[str], **extra: str) -> int:
    install(["dev"])
    build_assets()
    with compiled_meanwhile([str(PYTHON), "-m", "pytest", *rest, *sqlite], ROOT, _environ(**extra)):
        _call([str(PYTHON), "-m", "tests.suite.downloads", *rest], **extra)  # fails again in the tests that need it
    command = [str(PYTHON), "-m", "pytest", "--durations=15", "--durations-min=5", *_several(rest), *rest]
    with tempfile.TemporaryDirectory() as folder:
        extra["TEST_REPORT"] = str(report := Path(folder) / "not-tested.jsonl")
        code = _call([*command, *sqlite], TEST_DATABASE="sqlite", **extra)
        is_ci = bool(os.environ.get("CI"))
        if code in {0, 5} or (is_ci and code == 1):  # 5: no test was collected, 1: some failed
            say("Again on PostgreSQL")
            second = _call([*command, *postgres], TEST_DATABASE="postgres", **extra)
            code = code if second in {0, 5} and code != 5 else second
        for line in not_tested(report):
            say(line)
        if is_ci and code == 1:
            code = _call([str(PYTHON), "-m", "tests.suite.reruns", str(report), str(UNSTEADY)], **extra)
    return code


def _several(rest: list[str]) -> list[str]:
    """Options for several processes of tests: most of a run is waiting, so there are more of them than cores."""
    if any(word.startswith("-n") for word in rest):
        return []
    return ["-n", os.environ.get("TEST_PROCESSES", "5"), "--dist", "loadgroup"]


def check(_rest: list[str]) -> int:
    """Run all gates, one per core at a time; a failing one does not stop the others."""
    install(["dev"])
    build_assets()  # the types of the shell's runner are those of its bundle
    gates = [
        ["mypy", "."],  # the longest begin first
        ["pytest", "-q", "-p", "no:xdist", "tests/house", *(f"--ignore={path}" for path in OTHER_HOUSE)],
        ["pytest", "-q", "-p", "no:xdist", *OTHER_HOUSE],
        ["lint-imports", "--no-logo"],
        ["deptry", ".", "--no-ansi"],
        ["deno", "check", "-q", *DENO_CONFIG, "--frozen", *typed_scripts()],
        ["python", "manage.py", "check", "--fail-level", "WARNING"],
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["deno", "fmt", "--check", "-q", *DENO_CONFIG, *SCRIPTS],
        ["deno", "lint", "-q", *DENO_CONFIG, *SCRIPTS],
        ["deno", "check", "-q", *SHELL_CONFIG, "--frozen", *SHELL_SCRIPTS],
        ["deno", "fmt", "--check", "-q", *SHELL_CONFIG, *SHELL_SCRIPTS],
        ["deno", "lint", "-q", *SHELL_CONFIG, *SHELL_SCRIPTS],
    ]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        codes = list(threads.map(_gate, gates))
    failed = [" ".join(gate) for gate, code in zip(gates, codes, strict=True) if code != 0]
    for gate in failed:
        say(f"failed: {gate}")
    return 1 if failed else 0


def typed_scripts() -> list[str]:
    """The TypeScript of the page and its tests, as paths from the root: also what nothing imports is checked."""
    return sorted(str(path.relative_to(ROOT)) for folder in TYPED_SCRIPTS for path in (ROOT / folder).rglob("*.ts*"))


def fix(_rest: list[str]) -> int:
    """Format and mend."""
    install(["dev"])
    ruff = str(VENV / "bin" / "ruff")
    scripts = [str(VENV / "bin" / "deno"), "fmt", "-q", *DENO_CONFIG, *SCRIPTS]
    generated = ("reference", "api_types", "catalogues")
    written = [[str(PYTHON), "-m", f"thinkproject.{name}", "--write"] for name in generated]
    commands = ([ruff, "check", "--fix", "."], [ruff, "format", "."], scripts, *written)
    return max(_call(command) for command in commands)


def bench(rest: list[str]) -> int:
    """The benchmarks."""
    install(["dev"])
    build_assets()
    return _call([str(PYTHON), "-m", "bench", *rest])


def bench_coding(rest: list[str]) -> int:
    """The coding tasks, with the model that `THINK_MODEL` names."""
    install(["dev"])
    return _call([str(PYTHON), "-m", "bench.coding", *rest])


def chaos(rest: list[str]) -> int:
    """The long run that kills processes, on both databases."""
    install(["dev"])
    build_assets()
    command = [str(PYTHON), "-m", "pytest", "-s", "-m", "chaos", *rest]
    return max(_call(command, TEST_CHAOS="long", TEST_DATABASE=name) for name in ("sqlite", "postgres"))


def clients(rest: list[str]) -> int:
    """All tests of the published clients, each with both AI SDKs."""
    install(["dev"])
    build_assets()
    return _call([str(PYTHON), "-m", "pytest", "tests/clients", *_several(rest), *rest])


def clients_newest(rest: list[str]) -> int:
    """The tests of the published clients with their newest versions instead of the pinned ones."""
    install(["dev"])
    build_assets()
    bundled = _call([str(PYTHON), "-m", "tests.clients.bundle"], TEST_CLIENTS="newest")
    return bundled or _call([str(PYTHON), "-m", "pytest", "tests/clients", *rest], TEST_CLIENTS="newest", CI="1")


def example(rest: list[str]) -> int:
    """An example of `examples/` and the product behind it, until Ctrl-C."""
    install(["base", "examples"] if "assistant" in rest else ["base"])
    build_assets()
    sys.stdout.flush()
    os.chdir(ROOT)
    script = str(ROOT / "examples" / "run.py")
    os.execv(PYTHON, [str(PYTHON), script, *rest])  # noqa: S606 - our own interpreter


def clean(_rest: list[str]) -> int:
    """Remove generated files. Conversations in ./var stay."""
    names = [".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache"]
    for path in [
        *(ROOT / name for name in names),
        ROOT / "static" / "dist",
        ROOT / "tools_app" / "shell" / "runner" / "dist",
        ROOT / "examples" / "dist",
        ROOT / "staticfiles",
        ROOT / "screenshots",
    ]:
        shutil.rmtree(path, ignore_errors=True)
    for path in ROOT.rglob("__pycache__"):
        shutil.rmtree(path, ignore_errors=True)
    return 0


# --- Requirements of the machine --------------------------------------------------------------------------------


def require_python(arguments: list[str]) -> None:
    """Go on with a newer Python of this machine when this one is too old. Errors: `SetupError` when there is none."""
    if sys.version_info >= OLDEST:
        return
    for name in NEWER:
        path = shutil.which(name)
        test_code = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
        if path and subprocess.run([path, "-c", test_code], capture_output=True).returncode == 0:  # noqa: S603, PLW1510 - a Python of PATH
            os.chdir(ROOT)
            os.execv(path, [path, "-m", "thinkproject.run.bootstrap", *arguments])  # noqa: S606 - found on PATH
    found = platform.python_version()
    raise SetupError(f"Python 3.11 or newer is needed and this is {found}; install one, or say make PYTHON=/path run.")


def require_platform() -> None:
    """Errors: `SetupError` where the embedded servers have no binaries."""
    system, machine = platform.system(), platform.machine().lower()
    if system not in {"Linux", "Darwin"} or machine not in {"x86_64", "amd64", "aarch64", "arm64"}:
        raise SetupError(
            f"{system} on {machine} is not supported: Linux on x86_64 is what was tried (on Windows use WSL 2)."
        )
    if (system, machine) != ("Linux", "x86_64"):
        say(f"note: {system} on {machine} was never tried; Linux on x86_64 was.")


# --- The environment --------------------------------------------------------------------------------------------


def install(wanted: list[str]) -> None:
    """Bring `.venv` in step with the lock files, with hashes. Does nothing, and needs no network, when it is.

    Shape: names of lock files; what is there already stays. Errors: `SetupError`.
    """
    with _one_at_a_time():
        before = _read_stamp()
        names = sorted({*before.get("names", []), *wanted})
        if "dev" in names:
            names = [name for name in names if name != "base"]  # dev holds all of base
        target = {"names": names, "locks": _lock_hash(names), "python": _python_identity()}
        if before == target and PYTHON.exists():
            return
        started = time.monotonic()
        if before.get("python") != target["python"] or not PYTHON.exists():
            _make_environment()
            before = {}
        new = [name for name in names if name not in before.get("names", [])] or names
        say(
            f"Installing {' and '.join(new)}: up to {sum(DOWNLOADS.get(name, 0) for name in new)} MB to download, once."
        )
        _sync(names)
        STAMP.write_text(json.dumps(target), encoding="utf-8")
        say(f"Installed in {time.monotonic() - started:.0f} s.")


def _sync(names: list[str]) -> None:
    locks = [str(REQUIREMENTS / f"{name}.txt") for name in [*names, "uv"]]
    command = [str(VENV / "bin" / "uv"), "pip", "sync", "--require-hashes", "--python", str(PYTHON), *locks]
    cache = os.environ.get("UV_CACHE_DIR") or str(_cache_dir())
    environ = {**trusting_this_machine(), "UV_CACHE_DIR": cache, "UV_NO_CONFIG": "1"}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as installer:  # noqa: S603 - ours
        assert installer.stderr is not None
        for line in installer.stderr:
            if not line.startswith((" + ", " - ", " ~ ", " Downloaded", "Resolved")):
                say("  " + line.strip())
    if installer.returncode != 0:
        raise SetupError("the packages could not be installed; is there a network? What went wrong stands above.")


def installed(name: str) -> bool:
    """Return whether a lock file's packages are in the environment and in step."""
    names = _read_stamp().get("names", [])
    return name in names and _read_stamp().get("locks") == _lock_hash(names)


def _make_environment() -> None:
    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian leaves it out
        import venv  # noqa: PLC0415 - as above
    except ImportError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"this Python has no venv; on Debian and Ubuntu: apt install python{version}-venv, then again."
        ) from error
    say(f"Making {VENV.name} with Python {platform.python_version()}")
    try:
        if VENV.exists():
            shutil.rmtree(VENV)
        venv.EnvBuilder(with_pip=True, symlinks=True).create(VENV)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"{VENV} could not be made: {error}.") from error
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes", "--disable-pip-version-check"]
    command += [*_pip_certificates(), "-r", str(REQUIREMENTS / "uv.txt")]
    if subprocess.run(command, check=False).returncode != 0:  # noqa: S603 - our own
        raise SetupError("the installer could not be installed; is there a network? What went wrong stands above.")


def certificate_bundle() -> Path | None:
    """The file with the authorities that this machine trusts, where it keeps one."""
    return next((path for path in CERTIFICATE_BUNDLES if path.is_file()), None)


def trusting_this_machine() -> dict[str, str]:
    """The environment in which uv and Deno trust the machine's own authorities, such as that of a company's proxy.

    What the person has set wins. uv knows either its own list or the machine's, so a machine without one keeps uv's.
    """
    environ = dict(os.environ)
    environ.setdefault("DENO_TLS_CA_STORE", "mozilla,system")
    if certificate_bundle() is not None:
        environ.setdefault("UV_SYSTEM_CERTS", "true")
    return environ


def _pip_certificates() -> list[str]:
    """Options for the pip of an older Python, which knows its own authorities only, unless it is configured."""
    bundle = certificate_bundle()
    if bundle is None or any(os.environ.get(name) for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")):
        return []
    command = [str(PYTHON), "-m", "pip", "config", "list", "--disable-pip-version-check"]
    configured = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - our own
    return [] if ".cert=" in configured else ["--cert", str(bundle)]


def _read_stamp() -> dict[str, Any]:
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    handle = os.open(REQUIREMENTS, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock_hash(names: list[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update((REQUIREMENTS / f"{name}.txt").read_bytes())
    return digest.hexdigest()


def _python_identity() -> str:
    return f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}"


def _cache_dir() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        home.mkdir(parents=True, exist_ok=True)
        if os.access(home, os.W_OK):
            return home / "uv"
    except OSError:
        pass  # no home to speak of: keep the cache beside the environment
    return VENV / ".cache"


# --- Front end --------------------------------------------------------------------------------------------------


def build_assets() -> None:
    """Build the front end and the shell of tools when their sources changed. Errors: `SetupError`."""
    scripts = {
        "front end": ROOT / "static" / "build.py",
        "shell of tools": ROOT / "tools_app" / "shell" / "bundling.py",
    }
    for what, script in scripts.items():
        if not script.exists() or runpy.run_path(str(script))["is_current"]():
            continue
        if _call([str(PYTHON), str(script)]) != 0:
            raise SetupError(f"the {what} could not be built; what went wrong stands above.")


def _gate(words: list[str]) -> int:
    """Run one gate beside others; its output is printed in one piece at its end."""
    command = [str(VENV / "bin" / words[0]), *words[1:]]
    began = time.monotonic()
    done = subprocess.run(  # noqa: S603 - our own tools
        command,
        cwd=ROOT,
        env=_environ(DJANGO_SETTINGS_MODULE="thinkproject.settings_test"),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    say(f"$ {' '.join(words)}  ({time.monotonic() - began:.0f} s)\n{done.stdout.rstrip()}")
    return done.returncode


def _call(command: list[str], **extra: str) -> int:
    return subprocess.run(command, cwd=ROOT, env=_environ(**extra), check=False).returncode  # noqa: S603 - our own tools


def _environ(**extra: str) -> dict[str, str]:
    path = os.pathsep.join([str(VENV / "bin"), os.environ.get("PATH", "")])
    return {**trusting_this_machine(), "PATH": path, "VIRTUAL_ENV": str(VENV), **extra}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
