import type { Api } from "../../../src/http/app.ts";
import { readRunMessageId } from "../../client/credential.ts";
import { retryRead } from "../../client/retry.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { readTextArgument } from "../../terminal/input_text.ts";
import { escapeControls } from "../../terminal/visible.ts";
import { type AnyCommand, type BaseContext, command, option } from "../command.ts";
import { parseDuration } from "../duration.ts";

type Question = Api["GET /api/questions/:id"]["response"];

// The limit of the server for a question (contract 12).
const TEXT_MAX_BYTES = 16 * 1024;
// Agents stop shell commands that take longer (contract 12).
const WAIT_MAX_MS = 90_000;

const LATER = "End your turn now. The answer will arrive as a new task.";

export const group: AnyCommand = command({
  name: "ask",
  about: "Ask a person a question and print its ID, or wait for the answer",
  args: ["text|-"],
  options: {
    option: option.list("--option <text>", "answer to choose from, at most 10"),
    default: option.text("--default <text>", "answer to use when the question expires"),
    timeout: option.text("--timeout <duration>", "time until the question expires, from 1s to 30d", {
      default: "24h",
    }),
    wait: option.text("--wait <duration>", "wait for the answer and print it, at most 90s (exit code 124)"),
    messageId: option.text(
      "--message-id <id>",
      "message that the question is about; by default the message of the run",
      {
        completion: "message",
      },
    ),
  },
  examples: [
    "ask 'Delete the old backups, too?' --option Yes --option No --default No --timeout 2h",
    "ask 'Which database?' --wait 60s",
  ],
  async run(context) {
    const { client, out, args: [given = ""], options, io, note, reportId } = context;
    const text = await readTextArgument(io, given, "question", TEXT_MAX_BYTES);
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
    const isInRun = Boolean(io.env.SVC_RUN_ID);
    if (waitMs === null) {
      out.line(out.format === "json" ? json : value.id);
      if (isInRun) note(`Question sent. ${LATER}`);
      return;
    }
    reportId("accepted", value.id);
    await waitAndPrintAnswer(context, value.id, waitMs, isInRun);
  },
});

async function waitAndPrintAnswer(
  { client, out, io }: BaseContext,
  id: string,
  waitMs: number,
  isInRun: boolean,
): Promise<void> {
  const nextStep = isInRun ? LATER : `See: svc ctl question get ${id}`;
  const until = performance.now() + waitMs;
  let question: { json: string; value: Question };
  do {
    const left = Math.max(0, Math.round(until - performance.now()));
    question = await retryRead(
      () => client.call("GET /api/questions/:id/wait", { params: { id }, query: { timeout_ms: left } }),
      { signal: io.signal, withinMs: Math.min(client.reconnectMs, left), nextStep },
    );
  } while (question.value.status === "open" && performance.now() < until);
  const { json, value } = question;
  if (out.format === "json") out.line(json);
  else if (out.format === "ids") out.line(value.id);
  else if (value.answer !== "") out.line(io.outIsTerminal ? escapeControls(value.answer) : value.answer);
  if (value.status === "open") throw new Exit(EXIT.timedOut, `No answer yet. ${nextStep}`);
  if (value.status !== "answered") throw new Exit(EXIT.awaitedFailed, `question ${id} is ${value.status}`);
}
