import { api, buildQuery, loadPage, type Schemas } from "./api.ts";
import { useResource } from "./resource.ts";

/** The open questions of one conversation or of all, newest first; undefined before the first answer. */
export function useOpenQuestions(sessionKey = ""): Schemas["Question"][] | undefined {
  return useResource(
    `questions ${sessionKey}`,
    async (signal) => {
      const query = buildQuery({ status: "open", session_key: sessionKey });
      return (await loadPage(api.GET("/api/questions", { params: { query }, signal }))).items;
    },
    ({ kind, session_key }) =>
      (sessionKey === "" || session_key === sessionKey) && /^(question\.|session\.cleared)/.test(kind),
  ).data;
}
