import { QUESTION_STATUSES } from "../../../src/domain/vocabulary.ts";
import { field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command } from "../command.ts";
import { listCommand, pageOptions } from "../list.ts";
import { transitionCommand } from "../transition.ts";
import { readText } from "../../terminal/prompt.ts";
import { usageError } from "../../terminal/exit.ts";

// What the server takes as text (contract 1).
const ANSWER_MAX_BYTES = 256 * 1024;

export const questionCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List questions, newest first",
    endpoint: "GET /api/questions",
    columns: [
      idField(),
      statusField(),
      idField("worker_id"),
      timeField("created_at"),
      timeField("expires_at"),
      field("text"),
      field("options"),
      field("answer"),
    ],
    options: {
      status: {
        flags: "--status <statuses>",
        about: "in one of these",
        type: "text",
        choices: QUESTION_STATUSES,
        multiple: true,
      },
      sessionKey: {
        flags: "--session-key <key>",
        completion: "session_key",
        about: "of this conversation",
        type: "text",
      },
      workerId: {
        flags: "--worker-id <id>",
        completion: "worker",
        ref: "worker",
        about: "of this worker",
        type: "text",
      },
      ...pageOptions(100),
    },
    examples: ["question list --status open"],
  }),
  command({
    name: "get",
    about: "Show a question",
    args: ["id"],
    refs: { id: "question" },
    options: {},
    examples: ["question get 01a1fd23-4c79-764a-afab-047dd52450e4"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/questions/:id", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "answer",
    about: "Answer a question: an option by its text or number, or any text; - reads it from standard input",
    args: ["id", "text|-"],
    refs: { id: "question" },
    options: {},
    examples: ["question answer 01a1fd23-4c79-764a-afab-047dd52450e4 Yes"],
    async run({ client, out, io, args: [id = "", given = ""] }) {
      const answer = given === "-"
        ? (await readText(io, ANSWER_MAX_BYTES, "-")).replace(/[\r\n]+$/, "")
        : given;
      if (answer.trim() === "") throw usageError("the answer must not be empty");
      const { json, value } = await client.call("POST /api/questions/:id/answer", {
        params: { id },
        body: { answer },
      });
      out.object(json, value);
    },
  }),
  transitionCommand({
    name: "cancel",
    about: "Cancel an open question: nobody has to answer it any more",
    ref: "question",
    endpoint: "POST /api/questions/:id/cancel",
    examples: ["question cancel 01a1fd23-4c79-764a-afab-047dd52450e4"],
  }),
];
