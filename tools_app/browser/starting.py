"""Starts a browser of our own: which one, behind which walls, and how it ends.

Each browser has its own processes, profile and proxy. The walls are tried once, strongest first: a network, processes
and a user of its own, and Chromium's sandbox. All of it ends with the worker: the kernel kills the outermost process
when the thread that started it is gone, and with it, the whole namespace. Where there is no namespace, the browser ends
when its pipe does.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from thinkproject.kernel.trees import remove_tree
from tools_app.browser.conf import browser_settings
from tools_app.browser.errors import BrowserUnavailable
from tools_app.browser.wire import BrowserConnection, PipeTransport
from tools_app.processes.memory import children_of
from tools_app.sandbox.readable import is_open
from tools_app.sandbox.report import TierReport

logger = logging.getLogger(__name__)

WALLS_PROGRAM: Final = Path(__file__).resolve().with_name("walls.py")
NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
START_SECONDS: Final = 30.0
END_SECONDS: Final = 10.0
PREFIX: Final = "think-browser-"
LOCK: Final = "lock"
USER_ID: Final = 65533
"""The user of browsers where the worker is root: no other code of models runs as this one."""

FILE_BYTES: Final = 256 * 1024 * 1024
OPEN_FILES: Final = 4096
PRIVATE: Final = "The browser runs as another user, who cannot read {path} or a folder above it."
NO_BROWSER: Final = "There is no Chromium here: install one, or name it in THINK_BROWSER_PATH."

FLAGS: Final = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-gpu",
    "--disable-3d-apis",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-background-networking",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-quic",
    "--deny-permission-prompts",
    "--metrics-recording-only",
    "--password-store=basic",
    "--window-size=1280,800",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--proxy-server=http://127.0.0.1:{proxy}",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,DirectSockets,WebTransport",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserWalls:
    """One way to start a browser. `before`: programs before ours; `after`: between ours and the browser.

    `is_contained`: whether the kernel ends all of its processes with the outermost one, and it has no network.
    """

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    has_sandbox: bool
    is_contained: bool


def candidates() -> list[BrowserWalls]:
    """The ways, the strongest first. The last has none of the two walls, and needs the consent of a setting."""
    network, processes = ("--net", "--ipc"), ("--pid", "--fork", "--kill-child", "--mount-proc")
    die = ("setpriv", "--pdeathsig", "KILL")
    no_rights = (
        "setpriv",
        *_another_user(),
        "--no-new-privs",
        "--pdeathsig",
        "KILL",
    )  # another user loses the first signal
    before: tuple[str, ...] = (*die, "unshare", *network, *processes)
    after: tuple[str, ...] = no_rights
    if os.geteuid() != 0:  # a new user namespace clears the signal as well
        before = ("unshare", "--user", "--map-root-user", "--mount", *network, *die, "unshare", *processes)
        after = ("unshare", "--user", f"--map-user={USER_ID}", f"--map-group={USER_ID}", *no_rights)
    spaced, own = "namespaces of its own", "Chromium's sandbox"
    found = [
        BrowserWalls(name=f"{spaced}, {own}", before=before, after=after, has_sandbox=True, is_contained=True),
        BrowserWalls(name=spaced, before=before, after=after, has_sandbox=False, is_contained=True),
        BrowserWalls(name=own, before=(), after=no_rights, has_sandbox=True, is_contained=False),
    ]
    if browser_settings.without_walls:
        found.append(bare_walls())
    return found


def bare_walls() -> BrowserWalls:
    """Neither of the two walls: for a browser that shows no page, or by the consent of a setting."""
    after = ("setpriv", *_another_user(), "--no-new-privs", "--pdeathsig", "KILL")
    return BrowserWalls(name="limits", before=(), after=after, has_sandbox=False, is_contained=False)


def _another_user() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    user = str(USER_ID)
    return ("--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


def browser_path() -> str:
    """Find the browser. Errors: `BrowserUnavailable`."""
    found = browser_settings.path or next(filter(None, map(shutil.which, NAMES)), "")
    if not found or not os.access(found, os.X_OK):
        raise BrowserUnavailable(NO_BROWSER)
    return found


@dataclass(eq=False, kw_only=True)
class Chrome:
    """A browser that was started. `listener`: where its proxy has to listen. Ended by `end`, always."""

    process: asyncio.subprocess.Process
    connection: BrowserConnection
    listener: socket.socket
    walls: BrowserWalls
    profile: "Profile"
    _paused: bool = field(default=False)

    @property
    def pid(self) -> int:
        """The outermost process, whose process group is its own."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self.process.returncode is None and not self.connection.is_closed

    def pause(self) -> None:
        """Stop all of its processes until `resume`, where the kernel ends them with the worker even so."""
        if self.walls.is_contained:
            self._paused = True
            self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        if self._paused:
            self._paused = False
            self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it now."""
        self._signal(signal.SIGKILL)
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Kill it, wait until it is gone and remove its profile. Safe to call again."""
        self.kill()
        await self.connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self.process.wait()
        self.listener.close()
        await asyncio.to_thread(self.profile.remove)

    def _signal(self, number: signal.Signals) -> None:
        for each in tree_of(self.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, number)


def tree_of(pid: int) -> list[int]:
    """All processes below one, the innermost first, without itself."""
    found: list[int] = []
    waiting = children_of(pid)
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting += children_of(each)
    return found[::-1]


class Profile:
    """The directory of one browser, locked while its worker lives."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = (self.top / LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.folder = self.top / "profile"
        self.folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            self.top.chmod(0o711)
            os.chown(self.folder, USER_ID, USER_ID)

    def remove(self) -> None:
        """Remove it. Safe to call again."""
        with contextlib.suppress(OSError):
            remove_tree(self.top)
        self._lock.close()


def sweep() -> None:
    """Remove the directories of browsers whose worker is gone."""
    for top in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (top / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(top)


_FOUND: dict[tuple[str, bool], BrowserWalls] = {}


async def start() -> Chrome:
    """Start a browser behind the strongest walls that can be had here. Errors: `BrowserUnavailable`."""
    path = browser_path()
    key = (path, browser_settings.without_walls)
    if key in _FOUND:
        return await started(path, _FOUND[key])
    await asyncio.to_thread(sweep)
    if os.geteuid() == 0 and not await asyncio.to_thread(is_open, Path(path)):
        raise BrowserUnavailable(PRIVATE.format(path=path))
    for walls in candidates():
        try:
            chrome = await started(path, walls)
        except BrowserUnavailable:
            facts = {"action": "browser_walls", "walls": walls.name}
            logger.warning("browser: these walls cannot be had here: %s", walls.name, extra=facts)
            continue
        _FOUND[key] = walls
        return chrome
    raise BrowserUnavailable(
        "The browser does not start here, neither in namespaces of its own nor in its sandbox. "
        "THINK_BROWSER_WITHOUT_WALLS lets it start without both."
    )


async def started(path: str, walls: BrowserWalls, *, flags: Iterable[str] = ()) -> Chrome:
    """Start a browser behind these walls, and wait until it answers. Errors: `BrowserUnavailable`."""
    profile = await asyncio.to_thread(Profile)
    ours, theirs = socket.socketpair()
    process: asyncio.subprocess.Process | None = None
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *_command(path, walls, profile, theirs.fileno(), flags),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env=_environment(profile),
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                limit=PipeTransport.LIMIT,
            )
        async with asyncio.timeout(START_SECONDS):
            listener = await asyncio.to_thread(_received, ours)
            connection = BrowserConnection(PipeTransport(process))
            await connection.send("Browser.getVersion")
    except BaseException as error:
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await asyncio.to_thread(profile.remove)
        if isinstance(error, Exception):
            raise BrowserUnavailable("The browser did not start.") from error
        raise
    finally:
        ours.close()
    return Chrome(process=process, connection=connection, listener=listener, walls=walls, profile=profile)


def _command(path: str, walls: BrowserWalls, profile: Profile, control: int, flags: Iterable[str]) -> list[str]:
    program = [sys.executable, "-I", "-S", "-B", str(WALLS_PROGRAM), str(control), str(FILE_BYTES), str(OPEN_FILES)]
    sandbox = [] if walls.has_sandbox else ["--no-sandbox"]
    browser = [path, *FLAGS, *sandbox, f"--user-data-dir={profile.folder}", *flags]
    return [*walls.before, *program, *walls.after, *browser]


def _environment(profile: Profile) -> dict[str, str]:
    """All of it."""
    folder = str(profile.folder)
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"}


def _received(control: socket.socket) -> socket.socket:
    """The listener that the program hands over. Errors: `OSError` where it ended before."""
    control.settimeout(START_SECONDS)
    _, descriptors, _, _ = socket.recv_fds(control, 64, 1)
    if not descriptors:
        raise OSError("nothing was handed over")
    listener = socket.socket(fileno=descriptors[0])
    listener.setblocking(False)
    return listener


async def browser_report() -> list[TierReport]:
    """Whether a browser can be started on this machine, behind what, and why not. Starts one and ends it."""
    try:
        chrome = await start()
    except BrowserUnavailable as error:
        return [TierReport(tier="browser", is_available=False, reason=error.message)]
    try:
        version = await chrome.connection.send("Browser.getVersion")
    finally:
        await chrome.end()
    reason = f"{version.get('product', browser_path())}, behind: {chrome.walls.name}."
    return [TierReport(tier="browser", is_available=True, reason=reason)]
