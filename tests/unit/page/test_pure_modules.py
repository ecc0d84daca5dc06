"""The page's modules that need no document, checked without a browser; and its hints name real error codes."""

import os
import re
import subprocess
from pathlib import Path

from deno import find_deno_bin

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def test_pure_modules() -> None:
    config = str(ROOT / "static" / "deno.json")
    command = [find_deno_bin(), "test", "--config", config, "--cached-only", "--frozen", "--no-check", "--quiet"]
    allowed = ["--allow-net=127.0.0.1", f"--allow-read={ROOT / 'static' / 'src'}"]
    done = subprocess.run(
        [*command, *allowed, *map(str, sorted(HERE.glob("*.test.[jt]s")))],
        env={**os.environ, "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* passed", done.stdout), done.stdout


def test_hints_name_error_codes_that_exist() -> None:
    source = (ROOT / "static" / "src" / "app" / "store" / "status.ts").read_text(encoding="utf-8")
    block = source.partition("const HINTS: { readonly [code: string]: MessageKey } = {")[2].partition("};")[0]
    hinted = set(re.findall(r"^  (\w+):", block, re.MULTILINE))
    documented = set(
        re.findall(r"^\| `(\w+)`", (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert hinted
    assert hinted <= documented, hinted - documented
