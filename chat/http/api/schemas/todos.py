"""API schema of to-do lists."""

from ninja import Schema

from tools_app.core.todos import Todo


class TodosOut(Schema):
    """What is to be done in a conversation, in order; empty for one without a list."""

    todos: list[Todo]
