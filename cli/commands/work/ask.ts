import type { Api } from "../../../src/http/app.ts";
import { type AnyCommand, command, type Context } from "../command.ts";
import { parseDuration } from "../duration.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { readRunMessageId } from "../../client/credential.ts";
import { readText } from "../../terminal/prompt.ts";
import { retryRead } from "../../client/retry.ts";
import { escapeControls } from "../../terminal/visible.ts";

type Question = Api["GET /api/questions/:id"]["response"];

// What the server takes as text (contract 12).
const TEXT_MAX_BYTES = 16 * 1024;
// The shells of agents end what takes longer (contract 12).
const WAIT_MAX_MS = 90_000;

const LATER = "end your turn now: the answer comes to you as a new task";

export const askCommand: AnyCommand = command({
  name: "ask",
  about:
    "Ask a person a question; print its id, or with --wait the answer. Without an answer the worker gets it later, as a new task",
  args: ["text|-"],
  options: {
    option: {
      flags: "--option <text>",
      about: "an answer to choose from; may be repeated, up to 10 times",
      type: "list",
    },
    default: {
      flags: "--default <text>",
      about: "what counts when nobody answers in time",
      type: "text",
    },
    timeout: {
      flags: "--timeout <duration>",
      about: "how long the question is open, from 1s to 30d",
      type: "text",
      default: "24h",
    },
    wait: {
      flags: "--wait <duration>",
      about: "wait for the answer and print it, for 90s at most; exit code 124 when there is none yet",
      type: "text",
    },
    messageId: {
      flags: "--message-id <id>",
      completion: "message",
      about: "the message that it is about; in a run its own, elsewhere none: then it is in the inbox only",
      type: "text",
    },
  },
  examples: [
    "ask 'Delete the old backups, too?' --option Yes --option No --default No --timeout 2h",
    "ask 'Which database?' --wait 60s",
  ],
  async run(context) {
    const { client, out, args: [given = ""], options, io, note, reportId: tell } = context;
    const text = given === "-" ? (await readText(io, TEXT_MAX_BYTES, "-")).replace(/[\r\n]+$/, "") : given;
    if (text.trim() === "") throw usageError("the question must not be empty");
    const waitMs = options.wait === undefined ? null : parseDuration(options.wait, "--wait", 0);
    if (waitMs !== null && waitMs > WAIT_MAX_MS) throw usageError("--wait: must be at most 90s");
    const body = {
      message_id: options.messageId ?? (readRunMessageId(io.env) || `ask-${crypto.randomUUID()}`),
      text,
      options: options.option ?? [],
      ...(options.default === undefined ? {} : { default: options.default }),
      ...(options.timeout === undefined
        ? {}
        : { timeout_ms: parseDuration(options.timeout, "--timeout", 0) }),
    };
    const { json, value } = await client.call("POST /api/questions", { body });
    const inRun = Boolean(io.env.SVC_RUN_ID);
    if (waitMs === null) {
      if (out.format === "json") out.line(json);
      else out.line(value.id);
      if (inRun) note(`asked; ${LATER}`);
      return;
    }
    tell("accepted", value.id);
    await waitAndPrintAnswer(context as unknown as Context, value.id, waitMs, inRun);
  },
});

async function waitAndPrintAnswer(
  context: Context,
  id: string,
  waitMs: number,
  inRun: boolean,
): Promise<void> {
  const { client, out, io } = context;
  const onward = inRun ? LATER : `see: svc ctl question get ${id}`;
  const until = performance.now() + waitMs;
  let question: { json: string; value: Question };
  do {
    const left = Math.max(0, Math.round(until - performance.now()));
    question = await retryRead(
      () => client.call("GET /api/questions/:id/wait", { params: { id }, query: { timeout_ms: left } }),
      { signal: io.signal, withinMs: Math.min(client.reconnectMs, left), nextStep: onward },
    );
  } while (question.value.status === "open" && performance.now() < until);
  const { json, value } = question;
  if (out.format === "json") out.line(json);
  else if (out.format === "ids") out.line(value.id);
  else if (value.answer !== "") out.line(io.outIsTerminal ? escapeControls(value.answer) : value.answer);
  if (value.status === "open") throw new Exit(EXIT.timedOut, `no answer yet; ${onward}`);
  if (value.status !== "answered") {
    throw new Exit(EXIT.awaitedFailed, `question ${id} is ${value.status}: nobody answered it`);
  }
}
