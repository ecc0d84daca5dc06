// One agent of the reference implementation, as its README writes one, with the scripted provider as its model.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Think } from "@cloudflare/think";
import { routeAgentRequest } from "agents";

export class Assistant extends Think {
  getModel() {
    const provider = createOpenAICompatible({ name: "scripted", baseURL: this.env.PROVIDER_URL, apiKey: "scripted" });
    return provider("scripted");
  }
}

export default {
  async fetch(request, env) {
    return (await routeAgentRequest(request, env)) ?? new Response("Not found", { status: 404 });
  },
};
