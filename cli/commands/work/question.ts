import { QUESTION_STATUSES } from "../../../src/domain/call/vocabulary.ts";
import { toColumns } from "../../terminal/column.ts";
import { readTextArgument } from "../../terminal/input_text.ts";
import type { AnyCommand } from "../command.ts";
import { filterOption, pageOptions, resource, SESSION_KEY, WORKER_ID } from "../resource.ts";

const question = resource("question", {
  arg: "id",
  ref: "question",
  example: "01a1fd23-4c79-764a-afab-047dd52450e4",
});

export const group: AnyCommand[] = [
  question.list("List questions, newest first", "GET /api/questions", {
    columns: toColumns("id status worker_id created_at expires_at text options answer tool"),
    options: {
      status: filterOption("--status <statuses>", "status", QUESTION_STATUSES),
      sessionKey: SESSION_KEY,
      workerId: WORKER_ID,
      ...pageOptions(100),
    },
    examples: ["question list --status open"],
  }),
  question.get("GET /api/questions/:id"),
  question.verb(
    "answer",
    "Answer a question with an option's number or any text",
    "POST /api/questions/:id/answer",
    {
      args: ["id", "text|-"],
      examples: ["question answer 01a1fd23-4c79-764a-afab-047dd52450e4 Yes"],
      input: async (_options, { io, args: [, given = ""] }) => ({
        answer: await readTextArgument(io, given, "answer"),
      }),
    },
  ),
  question.verb("cancel", "Cancel an open question", "POST /api/questions/:id/cancel"),
];
