"""Fixtures of tests of file tools."""

import pytest

from tools_app.core.files.workspace import Workspace
from tools_app.core.tool import Tool
from tools_app.file_tools.workspace_tools import create_workspace_tools


@pytest.fixture
def file_tools(workspace: Workspace) -> dict[str, Tool]:
    return {tool.name: tool for tool in create_workspace_tools(workspace)}
