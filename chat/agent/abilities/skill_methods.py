"""Skills on an agent."""

from typing import Any


class SkillMethods:
    """Part of `Think`: where its skills come from."""

    def get_skills(self) -> Any:
        """Give the sources of skills: `SkillDirectory`, `WorkspaceSkills`, `SkillsInCode`, or your own (`SkillSource`).

        Runs once an attempt. The system prompt lists the skills, and the model gets tools to read them and to run their
        scripts. Of two with one name that of the later source counts. A source that fails blocks nothing: it is logged.
        """
        return ()
