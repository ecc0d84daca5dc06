"""Published servers of the Model Context Protocol: how each is started, and what it does here, where no network is.

`docs/reference/mcp-servers.md` is made of this, and `tests/db/chat/mcp_servers/test_published_servers.py` asks the
servers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chromium import require_chromium
from tests.mcp.others import of_npm, published_npm, published_pypi, versions

NO_NETWORK: Final = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}
"""Of a machine that could reach more, too: what a server asks for ends at a port where nothing listens."""
OFFICIAL: Final = "@modelcontextprotocol/server-"


@dataclass(frozen=True)
class Places:
    """What a server is given: an empty folder, a port of this machine, a Redis."""

    folder: Path
    port: int
    redis: str

    @property
    def chromium(self) -> str:
        """Path of a Chromium; without one the test is skipped."""
        return require_chromium()


@dataclass(frozen=True, kw_only=True)
class Published:
    """A server. `tools`: how many it offers. `call`: a harmless call, whose output contains `says`.

    `refusal`: instead, part of the sentence with which connecting fails. `cut`: lists that it cannot give. `fails`: its
    call needs a network or a key. `path`: of its address, for one that runs over HTTP.
    """

    package: str
    command: Callable[[Places], Sequence[str]]
    tools: int = 0
    call: tuple[str, Any] = ("", {})
    says: str = ""
    refusal: str = ""
    fails: str = ""
    cut: tuple[str, ...] = ()
    path: str = ""
    env: Callable[[Places], Mapping[str, str]] = field(default=lambda _places: {})

    @property
    def name(self) -> str:
        """The name of its test."""
        return self.package.strip("@").replace("/", "-") + ("-over-http" if self.path else "")

    @property
    def result(self) -> str:
        """What happens, in words."""
        if self.refusal:
            return f"says why not: “{self.refusal}”"
        cut = f", without {' and '.join(self.cut)}, which it cannot read" if self.cut else ""
        called = f"says why not: “{self.says}” ({self.fails})" if self.fails else "works"
        return f"connects{cut}; `{self.call[0]}` {called}"


def npm(package: str, *arguments: str, **more: Any) -> Published:
    """A package of npm that needs nothing of its places."""
    return Published(package=package, command=lambda _places: published_npm(package, *arguments), **more)


def pypi(package: str, *arguments: str, program: str = "", **more: Any) -> Published:
    """A package of PyPI that needs nothing of its places."""
    return Published(package=package, command=lambda _places: published_pypi(program or package, *arguments), **more)


def _chromium(places: Places) -> list[str]:
    return [
        "--headless",
        "--isolated",
        "--no-sandbox",
        "--executable-path",
        places.chromium,
        *("--output-dir", str(places.folder)),
    ]


def _written(places: Places) -> str:
    path = places.folder / "note.txt"
    path.write_text("one line\n")
    return str(path)


OF_NPM: Final = (
    npm(
        f"{OFFICIAL}sequential-thinking",
        tools=1,
        call=(
            "sequentialthinking",
            {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        ),
        says="thoughtHistoryLength",
    ),
    npm(
        f"{OFFICIAL}github",
        tools=26,
        call=("search_repositories", {"query": "x"}),
        says="fetch failed",
        fails="network",
    ),
    npm(f"{OFFICIAL}gitlab", refusal="GITLAB_PERSONAL_ACCESS_TOKEN environment variable is not set"),
    npm(
        f"{OFFICIAL}postgres",
        "postgresql://127.0.0.1:9/none",
        tools=1,
        call=("query", {"sql": "select 1"}),
        says="ECONNREFUSED",
        fails="database",
        cut=("resources",),
    ),
    Published(
        package=f"{OFFICIAL}redis",
        command=lambda places: published_npm(f"{OFFICIAL}redis", places.redis),
        tools=4,
        call=("set", {"key": "a", "value": "b"}),
        says="Successfully set",
    ),
    npm(f"{OFFICIAL}slack", refusal="Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID environment variables"),
    npm(f"{OFFICIAL}google-maps", refusal="GOOGLE_MAPS_API_KEY environment variable is not set"),
    npm("@brave/brave-search-mcp-server", refusal="A Brave API key is required"),
    npm(
        "@upstash/context7-mcp",
        tools=2,
        call=("resolve-library-id", {"libraryName": "django", "query": "forms"}),
        says="Error searching libraries",
        fails="network",
    ),
    npm("firecrawl-mcp", tools=27, call=("firecrawl_search", {"query": "x"}), says="failed", fails="network"),
    npm("@notionhq/notion-mcp-server", tools=24, call=("API-get-self", {}), says="connect", fails="network"),
    npm("tavily-mcp", tools=5, call=("tavily_search", {"query": "x"}), says="Tavily API error", fails="network"),
    Published(
        package="@playwright/mcp",
        command=lambda places: published_npm("@playwright/mcp", *_chromium(places)),
        tools=25,
        call=("browser_navigate", {"url": "data:text/html,<title>Hello</title>"}),
        says="Page Title: Hello",
    ),
    Published(
        package="chrome-devtools-mcp",
        command=lambda places: published_npm(
            "chrome-devtools-mcp",
            *("--headless", "--isolated", "--chromeArg=--no-sandbox", "--executablePath", places.chromium),
        ),
        tools=32,
        call=("list_pages", {}),
        says="about:blank",
    ),
    npm("@sentry/mcp-server", refusal="No access token was provided"),
    npm("@stripe/mcp", refusal="set the STRIPE_SECRET_KEY environment variable"),
    npm("figma-developer-mcp", "--stdio", refusal="Either FIGMA_API_KEY or FIGMA_OAUTH_TOKEN is required"),
    npm("mcp-server-kubernetes", tools=23, call=("ping", {}), says=""),
    npm("@supabase/mcp-server-supabase", "--access-token=none-at-all", refusal="fetch failed"),
    npm("exa-mcp-server", tools=2, call=("web_search_exa", {"query": "x"}), says="EXA_API_KEY", fails="key"),
    npm(
        "@antv/mcp-server-chart",
        tools=27,
        call=("generate_pie_chart", {"data": [{"category": "a", "value": 1}]}),
        says="Failed to generate",
        fails="network",
    ),
    npm(
        "@eslint/mcp",
        tools=1,
        call=("lint-files", {"filePaths": ["/nowhere/x.js"]}),
        says="No files matching",
        fails="no such file",
    ),
    npm("@perplexity-ai/mcp-server", refusal="PERPLEXITY_API_KEY environment variable is required"),
    npm("airtable-mcp-server", refusal="Set it in the `AIRTABLE_API_KEY` environment variable"),
    Published(
        package="obsidian-mcp",
        command=lambda places: published_npm("obsidian-mcp", str(_vault(places))),
        tools=12,
        call=("obsidian_list_vaults", {}),
        says="vault",
    ),
    npm("todoist-mcp", refusal="Missing required configuration: API_KEY"),
)


def _vault(places: Places) -> Path:
    vault = places.folder / "vault"
    (vault / ".obsidian").mkdir(parents=True, exist_ok=True)
    return vault


def _sqlite(places: Places) -> str:
    return str(places.folder / "some.db")


OF_PYPI: Final = (
    Published(
        package="mcp-server-sqlite",
        command=lambda places: published_pypi("mcp-server-sqlite", "--db-path", _sqlite(places)),
        tools=6,
        call=("read_query", {"query": "select 41 + 1 as answer"}),
        says="42",
    ),
    pypi("mcp-server-calculator", tools=1, call=("calculate", {"expression": "2 * 21"}), says="42"),
    pypi("duckduckgo-mcp-server", tools=2, call=("search", {"query": "x"}), says="No results", fails="network"),
    Published(
        package="arxiv-mcp-server",
        command=lambda places: published_pypi("arxiv-mcp-server", "--storage-path", str(places.folder)),
        tools=19,
        call=("list_papers", {}),
        says="total_papers",
    ),
    Published(
        package="cli-mcp-server",
        command=lambda _places: published_pypi("cli-mcp-server"),
        env=lambda places: {"ALLOWED_DIR": str(places.folder)},
        tools=2,
        call=("show_security_rules", {}),
        says="Allowed Commands",
    ),
    Published(
        package="mcp-shell-server",
        command=lambda _places: published_pypi("mcp-shell-server"),
        env=lambda _places: {"ALLOW_COMMANDS": "ls"},
        tools=1,
        call=("shell_execute", {"command": ["ls"], "directory": "/usr"}),
        says="bin",
    ),
    Published(
        package="mcp-text-editor",
        command=lambda places: published_pypi("mcp-text-editor"),
        tools=2,
        call=(
            "get_text_file_contents",
            lambda places: {"files": [{"file_path": _written(places), "ranges": [{"start": 1}]}]},
        ),
        says="one line",
    ),
    Published(
        package="excel-mcp-server",
        command=lambda _places: published_pypi("excel-mcp-server", "stdio"),
        tools=25,
        call=("create_workbook", lambda places: {"filepath": str(places.folder / "a.xlsx")}),
        says="Created workbook",
    ),
    pypi("wikipedia-mcp", tools=22, call=("search_wikipedia", {"query": "x"}), says="error", fails="network"),
    pypi(
        "mcp-weather-server",
        program="mcp_weather_server",
        tools=8,
        call=("get_timezone_info", {"timezone_name": "Europe/Berlin"}),
        says="Europe/Berlin",
    ),
    Published(
        package="code-index-mcp",
        command=lambda _places: published_pypi("code-index-mcp"),
        tools=14,
        call=("set_project_path", lambda places: {"path": str(Path(_written(places)).parent)}),
        says="Project path set",
    ),
    Published(
        package="mcp-alchemy",
        command=lambda _places: published_pypi("mcp-alchemy"),
        env=lambda places: {"DB_URL": f"sqlite:///{_sqlite(places)}"},
        tools=4,
        call=("execute_query", {"query": "select 41 + 1 as answer"}),
        says="answer: 42",
    ),
    Published(
        package="redis-mcp-server",
        command=lambda places: published_pypi("redis-mcp-server", "--url", places.redis),
        tools=53,
        call=("dbsize", {}),
        says="0",
    ),
    pypi("mcp-server-tree-sitter", tools=26, call=("list_languages", {}), says="python"),
    pypi("prometheus-mcp-server", refusal="PROMETHEUS_URL environment variable is not set"),
)
OVER_HTTP: Final = (
    Published(
        package=f"{OFFICIAL}everything",
        command=lambda _places: of_npm("everything", "streamableHttp"),
        env=lambda places: {"PORT": str(places.port)},
        path="/mcp",
        tools=16,
        call=("echo", {"message": "hello"}),
        says="hello",
    ),
    Published(
        package="@upstash/context7-mcp",
        command=lambda places: published_npm(
            "@upstash/context7-mcp", "--transport", "http", "--port", str(places.port)
        ),
        path="/mcp",
        tools=2,
        call=("resolve-library-id", {"libraryName": "django", "query": "forms"}),
        says="Error searching libraries",
        fails="network",
    ),
    Published(
        package="@playwright/mcp",
        command=lambda places: published_npm(
            "@playwright/mcp", *_chromium(places), "--allowed-hosts=*", "--port", str(places.port)
        ),
        path="/mcp",
        tools=25,
        call=("browser_navigate", {"url": "data:text/html,<title>Hello</title>"}),
        says="Page Title: Hello",
    ),
    Published(
        package="wikipedia-mcp",
        command=lambda places: published_pypi("wikipedia-mcp", "--transport", "http", "--port", str(places.port)),
        path="/mcp",
        tools=22,
        call=("search_wikipedia", {"query": "x"}),
        says="error",
        fails="network",
    ),
)
ALL: Final = (*OF_NPM, *OF_PYPI, *OVER_HTTP)
OTHERS: Final = {
    **{f"{OFFICIAL}{name}": "connects; several tools work" for name in ("everything", "filesystem", "memory")},
    **{f"mcp-server-{name}": "connects; several tools work" for name in ("time", "git", "fetch")},
}
"""Those of `tests/db/chat/mcp_servers/test_servers_of_others.py`."""


PLAIN: Final = {f"{OFFICIAL}sequential-thinking", f"{OFFICIAL}gitlab", "mcp-server-calculator"}
"""Those that a plain run takes."""


def table() -> str:
    """The table of the page."""
    pinned = versions()
    lines = ["| server | version | way | tools | result |", "|---|---|---|---|---|"]
    for name, result in OTHERS.items():
        lines.append(f"| {name} | {pinned[name]} | program | | {result} |")
    for each in ALL:
        way = "HTTP" if each.path else "program"
        lines.append(f"| {each.package} | {pinned[each.package]} | {way} | {each.tools or ''} | {each.result} |")
    return "\n".join(lines) + "\n"
