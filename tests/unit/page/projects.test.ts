// Conversations of projects in the list, and new ones that begin in a project.

import type { Api } from "../../../static/src/app/net/api.ts";
import { ConversationList, type Project } from "../../../static/src/app/store/list.ts";
import { Router } from "../../../static/src/app/store/router.ts";
import { same } from "./making.ts";

const raw = (id: string, minute: number, project: string | null = null) => ({
  id,
  agent: "plain",
  name: id,
  project_id: project,
  active_at: `2026-01-01T10:${String(minute).padStart(2, "0")}:00Z`,
});
const project = (id: string, name: string, count: number) => ({ id, name, conversation_count: count }) as Project;
const page = (items: ReturnType<typeof raw>[], cursor: string | null = null) => ({
  items,
  has_more: cursor !== null,
  next_cursor: cursor,
});

interface Answers {
  none: ReturnType<typeof page>;
  any: ReturnType<typeof page>;
  projects: Project[];
}

/** A list that has read these once. */
async function listOf(answers: Answers): Promise<ConversationList> {
  const api = {
    instances: ({ project: wanted, pinned }: { project?: string; pinned?: boolean }) =>
      Promise.resolve(pinned ? page([]) : wanted === "none" ? answers.none : answers.any),
    projects: () => Promise.resolve(answers.projects),
  };
  const list = new ConversationList(api as unknown as Api, () => {});
  list.projects = answers.projects;
  await list.refresh();
  return list;
}

const ids = (items: readonly { id: string }[]) => items.map(({ id }) => id);

Deno.test("conversations stand in their project, the last active first", async () => {
  const list = await listOf({
    none: page([raw("loose", 5)]),
    any: page([raw("new", 4, "p"), raw("old", 1, "p"), raw("other", 3, "q")]),
    projects: [project("p", "Garden", 2), project("q", "House", 3)],
  });
  same(ids(list.items), ["loose"]);
  same(ids(list.ofProject("p")), ["new", "old"]);
  same(list.projects.map((each) => list.hasMoreOf(each)), [false, true]);
  same(list.find("other")?.projectId, "q");
});

Deno.test("a conversation that is moved elsewhere leaves the days at once", async () => {
  const list = await listOf({
    none: page([raw("loose", 5)]),
    any: page([]),
    projects: [project("p", "Garden", 0)],
  });
  list.patch("loose", { projectId: "p" });
  same(ids(list.ofProject("p")), ["loose"]);
  list.drop("loose");
  same(ids(list.ofProject("p")), []);
});

Deno.test("what is loaded of a project beyond the newest page stays, and what was moved away goes", async () => {
  const answers = {
    none: page([raw("loose", 9)]),
    any: page([raw("new", 8, "p"), raw("moved", 7, "p")], "more"),
    projects: [project("p", "Garden", 3)],
  };
  const list = await listOf(answers);
  list.inside = [...list.inside, { ...list.inside[0], id: "older", activeAt: "2026-01-01T09:00:00Z" }];
  answers.any = page([raw("new", 8, "p"), raw("next", 6, "p")], "more");
  await list.refresh();
  same(ids(list.ofProject("p")), ["new", "next", "older"]);
});

Deno.test("projects are sorted by name, and what is unfolded is kept", () => {
  const list = new ConversationList({} as Api, () => {});
  list.putProject("b", project("b", "House", 0));
  list.putProject("a", project("a", "Garden", 0));
  same(list.projects.map(({ name }) => name), ["Garden", "House"]);
  list.unfold("a");
  same([...new ConversationList({} as Api, () => {}).unfolded], ["a"]);
  list.unfold("a");
  list.putProject("a", null);
  same([list.projects.length, list.unfolded.size], [1, 0]);
});

Deno.test("the address of a new conversation names its project", () => {
  const router = new Router("/", () => {});
  const address = router.address({ page: "new", agent: "plain", project: "prj_1" });
  same(address, "/c/new?agent=plain&project=prj_1");
  same(router.read(new URL(`https://example.com${address}`)), { page: "new", agent: "plain", project: "prj_1" });
  same(router.address({ page: "new", agent: "" }), "/c/new");
});
