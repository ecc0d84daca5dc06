"""Commands in containers of podman or Docker.

A container has no capability, no new privileges, the engine's filter of system calls, nothing writable but the
workspace and a `/tmp` in memory, and a name by which it is ended from outside. Its programs are those of the image in
`THINK_PROCESSES_IMAGE`, or of this machine. An image is never pulled.
"""

import functools
import json
import math
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools_app.processes.conf import process_settings
from tools_app.processes.filters import command_filter
from tools_app.processes.isolation import (
    ENVIRONMENT,
    LOCK,
    NOBODY,
    SHARED_BYTES,
    START,
    SYSTEM_V,
    TEMPORARY_BYTES,
    TRUSTED_PATH,
    UNPRIVILEGED,
    CommandBounds,
    MountPlace,
    is_root,
    limits,
)
from tools_app.processes.skeleton import machine_volumes, skeleton

PODMAN: Final = "podman"
DOCKER: Final = "docker"
SUPERVISOR: Final = Path(__file__).parent / "engine.sh"
LABEL: Final = "think.command"
HOST_LABEL: Final = "think.host"
ENGINE_SECONDS: Final = 30.0
ENGINE_FAILED: Final = 125
SPARE_SECONDS: Final = 60
"""How long a container may outlive its time when no process of ours is left to end it. Of podman only."""
PROCESSES_OF_USER: Final = 4096
"""Where the container's own processes are counted: a limit for its user, whom other containers have as well."""
VARIABLES: Final = (
    *("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS"),
    *("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINER_HOST"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
)
"""What the engine's client may need of this process's environment."""
FIRST: Final = 'shell=/bin/sh; [ ! -x /bin/bash ] || shell=/bin/bash; "$shell" -c "$@"; exit $?'
"""The first process of a container: it waits for the command, whose shell has then no special place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The abilities of an engine here. `fault`: why it can do nothing."""

    fault: str = ""
    is_rootless: bool = False
    memory: bool = False
    swap: bool = False
    processes: bool = False
    cpus: bool = False
    filters: bool = False
    command_filter: str = ""
    without_groups: bool = False

    @property
    def groups(self) -> str:
        """The resources that are bounded for all processes of a container together."""
        found = {"memory": self.memory, "number of processes": self.processes, "processors": self.cpus}
        return ", ".join(name for name, is_counted in found.items() if is_counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEngine:
    """One engine."""

    name: str
    is_supervised: bool = True
    has_room: bool = False

    @property
    def description(self) -> str:
        """The way in a few words."""
        programs = f"the image {process_settings.image}" if process_settings.image else "the programs of this machine"
        groups = _facts(self.name).groups
        bounds = f"control groups bound {groups}" if groups else "no control groups, so the worker watches the memory"
        return f"containers made by {self.name}, with {programs}; {bounds}"

    @property
    def proofs(self) -> Mapping[str, str]:
        """Names and values of the command's own status."""
        return {**UNPRIVILEGED, "Seccomp": "2"}

    def prepare(self) -> str:
        """Ask the engine, remove what was left, and make the image if it is ours."""
        if shutil.which(self.name, path=self.environment()["PATH"]) is None:
            return f"{self.name} not found"
        _facts.cache_clear()
        facts = _facts(self.name)
        if facts.fault:
            return facts.fault
        if not facts.filters or (self.name == PODMAN and not facts.command_filter):
            return "it has no filter of system calls (seccomp) that could be used"
        if self.name == DOCKER and not (facts.memory and facts.processes):
            return "it cannot bound the memory and the number of processes (control groups)"
        self.remove_left()
        return self._image_fault()

    def environment(self) -> Mapping[str, str]:
        """The variables that the client needs. The command sees none of them."""
        path = f"{TRUSTED_PATH}:{os.environ.get('PATH', '')}"
        return {"PATH": path, "LANG": "C.UTF-8"} | {name: os.environ[name] for name in VARIABLES if name in os.environ}

    def command_line(self, script: str, place: MountPlace, bounds: CommandBounds) -> list[str]:
        """The command line that runs a shell command. Writes the filter of system calls beside it."""
        name = place.root.parent.name
        image = process_settings.image
        words = [
            *("/bin/sh", str(SUPERVISOR), self.name, name),
            *("run", "--rm", "--pull=never", f"--name={name}", f"--cidfile={_id_file(place.root, self.name)}"),
            *(f"--label={LABEL}={place.root.parent}", f"--label={HOST_LABEL}={_host()}"),
            *(
                "--log-driver=none",
                "--no-healthcheck",
                "--hostname=command",
                "--workdir=/",
                "--entrypoint=/bin/sh",
                "--stop-timeout=0",
            ),
            *("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
            f"--network={'host' if place.network else 'none'}",
            *self._user(),
            *_bounds(_facts(self.name), bounds),
            f"--tmpfs=/tmp:rw,nosuid,nodev,size={TEMPORARY_BYTES},mode=1777",
            f"--shm-size={TEMPORARY_BYTES}",
            f"--volume={place.folder}:/workspace:rw,Z",
            *(() if image else machine_volumes(network=place.network)),
            *(f"--env={key}={value}" for key, value in ENVIRONMENT.items() if key != "PATH" or not image),
        ]
        if self.name == PODMAN:
            seconds = math.ceil(bounds.seconds) + SPARE_SECONDS
            words += [
                "--read-only-tmpfs=false",
                "--image-volume=ignore",
                "--http-proxy=false",
                "--security-opt=mask=/sys",
            ]
            words += [f"--timeout={seconds}", f"--pidfile={_pid_file(place.root)}"]
            filters = place.root / "seccomp.json"
            filters.write_text(_facts(self.name).command_filter)
            words += [f"--security-opt=seccomp={filters}"]
        else:
            words += ["--tmpfs=/sys:ro,size=4k"]
        start = [FIRST, "first", START, "run_command", f"/workspace{place.cwd}", script]
        return [*words, image or skeleton()[0], "-c", *start]

    def watched_process(self, pid: int, place: MountPlace) -> int:
        """The first process of the container, as the engine names it."""
        del pid
        if self.name == PODMAN:
            return _number(_pid_file(place.root))
        file = place.root / "docker.pid"
        if not file.exists() and _id_file(place.root, self.name).exists():
            found = self._asked("inspect", "--format={{.State.Pid}}", place.root.parent.name).stdout.strip()
            if found not in {b"", b"0"}:  # it is not there yet
                file.write_bytes(found)
        return _number(file)

    def is_no_start(self, place: MountPlace, code: int) -> bool:
        """Whether the engine failed before there was a container."""
        return code == ENGINE_FAILED and not _id_file(place.root, self.name).exists()

    def remove_left(self) -> None:
        """Remove containers of this machine whose directory is gone."""
        label = f'index .Labels "{LABEL}"' if self.name == PODMAN else f'.Label "{LABEL}"'
        own = f"--filter=label={HOST_LABEL}={_host()}"
        listed = self._asked("ps", "--all", "--no-trunc", own, f"--format={{{{.ID}}}} {{{{{label}}}}}")
        for line in listed.stdout.decode(errors="replace").splitlines():
            identifier, _, folder = line.partition(" ")
            if folder and not Path(folder, LOCK).exists():
                self.remove(identifier)

    def remove(self, name: str) -> None:
        """End a container and remove it. Nothing happens where there is none."""
        self._asked("rm", "--force", name)

    def _user(self) -> list[str]:
        if is_root():
            return [f"--user={NOBODY}:{NOBODY}"]
        if self.name == PODMAN:
            return ["--userns=keep-id", f"--user={os.geteuid()}:{os.getegid()}"]
        return ["--user=0:0"] if _facts(self.name).is_rootless else [f"--user={os.geteuid()}:{os.getegid()}"]

    def _image_fault(self) -> str:
        image = process_settings.image
        name = image or skeleton()[0]
        found = self._asked("image", "inspect", "--format={{json .Config.Volumes}}", name)
        if found.returncode == 0:
            volumes = found.stdout.decode(errors="replace").strip()
            return "" if volumes in {"", "null", "{}"} else f"the image {name} has volumes, which could be written to"
        if image:
            return f"there is no image {image} here, and none is pulled"
        made = self._asked("import", "-", name, data=skeleton()[1])
        return "" if made.returncode == 0 else f"no image could be made: {_words(made)}"

    def _asked(self, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return _asked(self.name, words, self.environment(), data)


ENGINES: Final = (ContainerEngine(name=PODMAN), ContainerEngine(name=DOCKER))


def remove_containers(top: Path) -> None:
    """End what was left of the command with this directory."""
    for engine in ENGINES:
        if _id_file(top / "root", engine.name).exists():
            engine.remove(top.name)


def _host() -> str:
    """This machine, as processes see it that see the same directories: others' commands are not ours to judge."""
    spaces = Path("/proc/self/ns/mnt")
    return f"{socket.gethostname()}-{spaces.stat().st_ino if spaces.exists() else 0}"


def _bounds(facts: Facts, bounds: CommandBounds) -> list[str]:
    """Bounds of the control groups that there are, and of each process. `/tmp` and `/dev/shm` count as memory."""
    words = []
    if facts.memory:
        memory = bounds.memory_bytes + SHARED_BYTES
        words += [f"--memory={memory}", *([f"--memory-swap={memory}"] if facts.swap else [])]
    if facts.processes:
        words += [f"--pids-limit={bounds.processes}"]
    if facts.cpus:
        words += [f"--cpus={min(bounds.cpus, os.cpu_count() or 1):g}"]
    if facts.without_groups:
        words += ["--cgroups=disabled"]
    if not facts.is_rootless:  # older kernels let no other user set them
        words += [f"--sysctl=kernel.{name}={value}" for name, value in SYSTEM_V.items()]
    processes = PROCESSES_OF_USER if facts.processes else bounds.processes
    return [
        *words,
        *(f"--ulimit={kind}={value}:{value}" for kind, value in limits(bounds, processes=processes).items()),
    ]


@functools.cache
def _facts(name: str) -> Facts:
    words = ("info", "--format=json") if name == PODMAN else ("info", "--format={{json .}}")
    answer = _asked(name, words, ContainerEngine(name=name).environment())
    if answer.returncode != 0:
        return Facts(fault=_words(answer))
    try:
        found = json.loads(answer.stdout)
        return _podman_facts(found) if name == PODMAN else _docker_facts(found)
    except (ValueError, KeyError, TypeError):
        return Facts(fault=_words(answer))


def _podman_facts(found: dict[str, Any]) -> Facts:
    host = found["host"]
    groups = set(host["cgroupControllers"] or ())
    return Facts(
        is_rootless=host["security"]["rootless"],
        memory="memory" in groups,
        swap="memory" in groups,
        processes="pids" in groups,
        cpus="cpu" in groups,
        filters=host["security"]["seccompEnabled"],
        without_groups=not groups and host["ociRuntime"]["name"] == "crun",  # runc needs no word, and knows none
        command_filter=command_filter(host["security"].get("seccompProfilePath") or ""),
    )


def _docker_facts(found: dict[str, Any]) -> Facts:
    if errors := found.get("ServerErrors"):
        return Facts(fault="; ".join(errors))
    options = [str(option) for option in found["SecurityOptions"] or ()]
    return Facts(
        is_rootless=any(option.startswith("name=rootless") for option in options),
        memory=found["MemoryLimit"],
        swap=found["SwapLimit"],
        processes=found["PidsLimit"],
        cpus=found["CpuCfsQuota"],
        filters=any(option.startswith("name=seccomp") for option in options),
    )


def _asked(
    name: str, words: Sequence[str], environment: Mapping[str, str], data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - the engine, with words of this module
            [name, *words], input=data, capture_output=True, env=dict(environment), timeout=ENGINE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(
            [name], ENGINE_FAILED, b"", f"it did not answer ({type(error).__name__})".encode()
        )


def _words(answer: subprocess.CompletedProcess[bytes]) -> str:
    text = " ".join(answer.stderr.decode(errors="replace").split())
    return text[:300] or f"it ended with {answer.returncode}"


def _id_file(root: Path, name: str) -> Path:
    return root / f"{name}.id"


def _pid_file(root: Path) -> Path:
    return root / "pid"


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0
