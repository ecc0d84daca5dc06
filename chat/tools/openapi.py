"""Tools made of an OpenAPI document: the operations that the agent's class allows."""

from tools_app.openapi.documents import load_openapi_document
from tools_app.openapi.tools import OpenApiOptions, create_openapi_tools

__all__ = ["OpenApiOptions", "create_openapi_tools", "load_openapi_document"]
