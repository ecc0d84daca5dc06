"""What Alice has, for requests that another person makes for it."""

import json
from dataclasses import dataclass
from typing import Any

from chat.files import attachments
from chat.models import AgentInstance, AgentRun, Attachment, Turn
from fibers.models.schedules import Schedule
from tests.db.chat.access_operations import QUERIES
from tools_app.models import McpServer, ToolCallRecord
from tools_app.models.code_runs import Execution


@dataclass(frozen=True, kw_only=True)
class Hers:
    """What Alice has."""

    instance: AgentInstance
    turn: Turn
    running: Turn
    submission: Turn
    file: Attachment
    call: ToolCallRecord
    compaction_id: str
    server: McpServer
    content_id: str
    schedule: Schedule
    grant_id: str
    device_id: str
    prompt_id: str
    project_id: str
    fiber_id: str
    job_id: str
    run: AgentRun
    execution: Execution
    workspace_id: str
    import_id: str
    rule_id: str
    member_id: str
    invitation_id: str
    token_id: int
    browser_id: str
    export_id: str
    share_id: str

    def fill(self, text: str) -> str:
        ids = {
            "instance_id": self.instance.id,
            "session_id": self.instance.session_id,
            "turn_id": self.turn.id,
            "running_id": self.running.id,
            "submission_id": self.submission.id,
            "file_id": self.file.id,
            "version_id": "1",  # none is kept
            "compaction_id": self.compaction_id,
            "grant_id": self.grant_id,
            "device_id": self.device_id,
            "prompt_id": self.prompt_id,
            "project_id": self.project_id,
            "fiber_id": self.fiber_id,
            "job_id": self.job_id,
            "execution_id": self.execution.pk,
            "workspace_id": self.workspace_id,
            "method": "recall",
            "file_url": attachments.url_of(self.file.id),
            "question_id": "alices-question",
            "message_id": "alices-answer",
            "call_id": self.call.call_id,
            "server_id": self.server.pk,
            "thread_id": "f0000000",
            "effect_id": 1,
            "run_id": self.run.pk,
            "import_id": self.import_id,
            "rule_id": self.rule_id,
            "content_id": self.content_id,
            "member_id": self.member_id,
            "invitation_id": self.invitation_id,
            "token_id": self.token_id,
            "browser_id": self.browser_id,
            "export_id": self.export_id,
            "share_id": self.share_id,
            "schedule_id": self.schedule.pk,
            # The block that a path is about: one of entries where it goes on to these.
            "label}/entries": "skills/entries",
            "label": "memory",
            "key": "tea",
            "name": "hers",
        }
        for name, value in ids.items():
            text = text.replace("{" + name + ("" if "}" in name else "}"), str(value))
        return text

    def address(self, method: str, path: str) -> str:
        """The same, with the parameters that the operation needs."""
        return self.fill(path + QUERIES.get((method, path), ""))

    def filled(self, body: Any) -> Any:
        """The same in a body."""
        return json.loads(self.fill(json.dumps(body))) if isinstance(body, dict) else body
