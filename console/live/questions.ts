import { api, askPage, type Question } from "./api.ts";
import { useResource } from "./resource.ts";

const SHOWN = 100;

/** The open questions, of one conversation or of all, newest first; undefined before the first answer. */
export function useOpenQuestions(sessionKey = ""): Question[] | undefined {
  return useResource(
    `questions ${sessionKey}`,
    async (signal) => {
      const query = {
        status: "open",
        page_size: SHOWN,
        ...(sessionKey === "" ? {} : { session_key: sessionKey }),
      };
      return (await askPage(api.GET("/api/questions", { params: { query }, signal }))).items;
    },
    ({ kind, session_key }) =>
      (sessionKey === "" || session_key === sessionKey) && /^(question\.|session\.cleared)/.test(kind),
  ).data;
}
