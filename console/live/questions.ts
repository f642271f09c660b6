import type { Schemas } from "./api.ts";
import { useGet } from "./resource.ts";

const QUESTIONS_READ = 100;

/** The open questions of one conversation or of all, newest first; undefined before the first answer. */
export function useOpenQuestions(session_key = ""): Schemas["Question"][] | undefined {
  return useGet(
    "/api/questions",
    { query: { status: "open", page_size: QUESTIONS_READ, ...(session_key === "" ? {} : { session_key }) } },
    (event) =>
      (session_key === "" || event.session_key === session_key) &&
      /^(question\.|session\.cleared)/.test(event.kind),
  ).data;
}
