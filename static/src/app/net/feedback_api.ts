// What a person thinks of answers, on the server.

import type { Api, Schemas } from "./api.ts";

export type GivenFeedback = Schemas["FeedbackOut"];

const seg = encodeURIComponent;
const place = (id: string, messageId: string) => `/instances/${seg(id)}/messages/${seg(messageId)}/feedback`;

export const readFeedback = (api: Api, id: string): Promise<GivenFeedback[]> =>
  api.request("GET", `/instances/${seg(id)}/feedback`);

export const giveFeedback = (
  api: Api,
  id: string,
  messageId: string,
  given: Schemas["FeedbackIn"],
): Promise<GivenFeedback> => api.request("PUT", place(id, messageId), given);

export const takeFeedbackBack = (api: Api, id: string, messageId: string): Promise<null> =>
  api.request("DELETE", place(id, messageId));
