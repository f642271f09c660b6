import { basename, resolve } from "node:path";
import { INBOUND_STATUSES, OUTBOUND_STATUSES, SOURCE_TYPES } from "../../../src/domain/call/vocabulary.ts";
import { buildForm } from "../../client/upload_form.ts";
import { clockField, type Column, type Row, toColumns } from "../../terminal/column.ts";
import { usageError } from "../../terminal/exit.ts";
import { readText, TEXT_MAX_BYTES } from "../../terminal/input_text.ts";
import { type AnyCommand, command, option, toFields } from "../command.ts";
import { filterOption, pageOptions, requestCommand, resource, SESSION_KEY, TEXT } from "../resource.ts";

const message = resource("message", {
  arg: "id",
  ref: "message",
  example: "01a1fd23-4c79-764a-afab-047dd52450e4",
});

const FILTERS = {
  text: TEXT,
  sessionKey: SESSION_KEY,
  platform: option.text("--platform <name>", "filter by platform, e.g. local", {
    completion: "platform",
    multiple: true,
  }),
};
const MEDIA: Column = { name: "media", value: (row) => (row.media as Row | null)?.original_name };

export const group: AnyCommand[] = [
  command({
    name: "send",
    about: "Reply to a message in its conversation, with a text, a file or both",
    options: {
      messageId: option.text("--message-id <id>", "message to reply to", {
        completion: "message",
        required: true,
      }),
      stdin: option.flag("--stdin", "read the text from stdin"),
      mediaPath: option.text("--media-path <file>", "file to upload and send"),
    },
    examples: [
      "message send --message-id $SVC_MESSAGE_ID --stdin <<< 'Half of it is done'",
      "message send --message-id $SVC_MESSAGE_ID --media-path report.pdf",
    ],
    async run({ client, out, options, io, note }) {
      const { messageId, mediaPath } = options;
      if (!options.stdin && mediaPath === undefined) throw usageError("specify --stdin or --media-path");
      // The last line break, from echo or a heredoc, is not part of the text.
      const content = options.stdin
        ? (await readText(io, TEXT_MAX_BYTES, "--stdin", ". Send a file with --media-path."))
          .replace(/[\r\n]+$/, "")
        : "";
      if (options.stdin && content.trim() === "" && mediaPath === undefined) {
        throw usageError("--stdin: stdin has no text");
      }
      const body = { message_id: messageId, content };
      if (mediaPath === undefined) {
        const { json, value } = await client.call("POST /api/messages", { body });
        return out.object(json, value);
      }
      const form = await buildForm(resolve(io.cwd, mediaPath), {
        message_id: messageId,
        ...(content === "" ? {} : { content }),
      });
      const progress = createProgressBar(basename(mediaPath), io.errIsTerminal ? io.err : null);
      const { json, value } = await client.call("POST /api/messages", { upload: form.stream(progress) });
      progress(form.size, form.size);
      if (io.errIsTerminal) note("");
      out.object(json, value);
    },
  }),
  message.list("List inbound messages, newest first", "GET /api/messages/inbound", {
    columns: toColumns("id status platform session_key received_at", MEDIA, "content"),
    options: {
      ...FILTERS,
      status: {
        ...filterOption("--status <statuses>", "status", INBOUND_STATUSES),
        about:
          "filter by status (feeding: being routed, bee_processed: routed, merged: joined with a later message)",
      },
      text: TEXT,
      receivedFrom: option.time("--received-from <time>", "received at or after this time"),
      receivedTo: option.time("--received-to <time>", "received at or before this time"),
      ...pageOptions(100),
    },
    examples: ["message list --session-key local:$session", "message list --status failed"],
  }),
  requestCommand({
    name: "list-outbound",
    about: "List outbound messages, newest first",
    endpoint: "GET /api/messages/outbound",
    columns: toColumns("id status platform session_key source_type source_id sent_at", MEDIA, "content"),
    options: {
      ...FILTERS,
      status: filterOption("--status <statuses>", "status", OUTBOUND_STATUSES),
      sourceType: filterOption(
        "--source-type <types>",
        "sender type, where bee is the coordinator",
        SOURCE_TYPES,
      ),
      worker: option.text("--worker <id|name>", "filter by the worker that sent it", {
        completion: "worker",
        ref: "worker",
      }),
      sourceId: option.text(
        "--source-id <id|name>",
        "filter by the sender: a worker, or another one as listed",
        {
          completion: "worker",
          ref: "worker",
          takesOthers: true,
          unless: "--worker",
        },
      ),
      text: TEXT,
      sentFrom: option.time("--sent-from <time>", "sent at or after this time"),
      sentTo: option.time("--sent-to <time>", "sent at or before this time"),
      ...pageOptions(100),
    },
    input: ({ worker, sourceId = worker, ...options }) => toFields({ sourceId, ...options }),
    examples: ["message list-outbound --source-type worker", "message list-outbound --status failed"],
  }),
  command({
    name: "resend",
    about: "Send undelivered messages again: one message, or all of a platform",
    args: ["[id]"],
    refs: { id: "outbound" },
    options: {
      platform: option.text("--platform <name>", "all messages of this platform", { completion: "platform" }),
      since: option.time("--since <time>", "only messages created at or after this time"),
    },
    examples: [
      "message resend 01a1fd23-4c79-764a-afab-047dd52450e4",
      "message resend --platform phone --since -2d",
    ],
    async run({ client, out, args: [id], options: { platform, since }, note }) {
      if (platform === undefined) {
        if (id === undefined) throw usageError("specify <id> or --platform");
        if (since !== undefined) throw usageError("--since requires --platform");
        const { json, value } = await client.call("POST /api/messages/:id/resend", { params: { id } });
        return out.object(json, value);
      }
      if (id !== undefined) throw usageError("<id> and --platform cannot be used together");
      const body = { platform, ...toFields({ since }) };
      const { json, value } = await client.call("POST /api/messages/resend", { body });
      out.object(json, value, String(value.resent));
      if (value.more) note("more messages are undelivered: run the command again");
    },
  }),
  message.verb(
    "trace",
    "Show routing, tasks, executions and replies of a message",
    "GET /api/messages/:id/trace",
    {
      columns: toColumns(clockField("at"), "step id status took_ms what"),
      rows: buildSteps,
    },
  ),
];

type Steps = Record<"parts" | "routing" | "tasks" | "executions" | "replies", Row[]>;

/** Merges the parts of a trace into one list by time. */
function buildSteps({ parts, routing, tasks, executions, replies }: Steps): Row[] {
  const step = (name: string, row: Row, from: unknown, to: unknown, what: unknown): Row => ({
    at: from,
    step: name,
    id: row.id,
    status: row.status,
    took_ms: typeof from === "number" && typeof to === "number" ? to - from : null,
    what,
  });
  return [
    ...parts.map((row) => step("message", row, row.received_at, row.processed_at, findText(row))),
    ...routing.map((row) => step("routing", row, row.created_at, row.completed_at, row.reason || row.error)),
    ...tasks.map((row) => step("task", row, row.created_at, null, `${row.type}: ${row.instruction}`)),
    ...executions.map((row) =>
      step(
        "execution",
        row,
        row.started_at ?? row.created_at,
        row.completed_at,
        `${row.worker_name}: ${findOutcome(row)}`,
      )
    ),
    ...replies.map((row) => step("reply", row, row.created_at, row.sent_at, findText(row))),
  ].sort((a, b) => Number(a.at) - Number(b.at));
}

// A file without text shows its name.
function findText(row: Row): unknown {
  return row.content || MEDIA.value(row);
}

function findOutcome(row: Row): unknown {
  return row.failure ? `${row.failure} ${row.error}`.trim() : row.result || row.instruction;
}

const BAR_CELLS = 30;

/** Creates a function that draws the progress of an upload on one line. Draws nothing without a terminal. */
function createProgressBar(
  name: string,
  err: ((text: string) => void) | null,
): (sent: number, size: number) => void {
  let shown = -1;
  return (sent, size) => {
    const percent = size === 0 ? 100 : Math.floor((sent / size) * 100);
    if (err === null || percent === shown) return;
    shown = percent;
    const full = Math.round((percent / 100) * BAR_CELLS);
    err(`\r${name} [${"█".repeat(full)}${" ".repeat(BAR_CELLS - full)}] ${percent} %`);
  };
}
