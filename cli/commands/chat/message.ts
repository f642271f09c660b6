import { basename, resolve } from "node:path";
import { buildForm } from "../../client/upload_form.ts";
import { INBOUND_STATUSES, OUTBOUND_STATUSES, SOURCE_TYPES } from "../../../src/domain/vocabulary.ts";
import {
  clockField,
  type Column,
  field,
  idField,
  type Row,
  statusField,
  timeField,
} from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";
import { usageError } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { readText } from "../../terminal/prompt.ts";

// What the server takes as text (contract 1).
const TEXT_MAX_BYTES = 256 * 1024;

const FILTERS = {
  sessionKey: {
    flags: "--session-key <key>",
    completion: "session_key",
    about: "of this conversation",
    type: "text",
  },
  platform: {
    flags: "--platform <name>",
    completion: "platform",
    about: "of this platform, such as local",
    type: "text",
    multiple: true,
  },
} as const satisfies Record<string, OptionSpec>;

const MEDIA: Column = { name: "media", value: (row) => (row.media as Row | null)?.name };

const COLUMNS = [
  idField(),
  statusField(),
  field("platform"),
  idField("session_key"),
  timeField("received_at"),
  MEDIA,
  field("content"),
];

const OUTBOUND_COLUMNS = [
  idField(),
  statusField(),
  field("platform"),
  idField("session_key"),
  field("source_type"),
  idField("source_id"),
  timeField("sent_at"),
  MEDIA,
  field("content"),
];

export const messageCommands: AnyCommand[] = [
  command({
    name: "send",
    about: "Say something more in the conversation of a message: text, a file, or both",
    options: {
      messageId: {
        flags: "--message-id <id>",
        completion: "message",
        about: "the message that is answered",
        type: "text",
        required: true,
      },
      stdin: { flags: "--stdin", about: "read the text from standard input", type: "flag" },
      mediaPath: { flags: "--media-path <file>", about: "a file to upload and send", type: "text" },
    },
    examples: [
      "message send --message-id $SVC_MESSAGE_ID --stdin <<< 'Half of it is done'",
      "message send --message-id $SVC_MESSAGE_ID --media-path report.pdf",
    ],
    async run({ client, out, options, io, note }) {
      const { messageId, mediaPath } = options;
      if (!options.stdin && mediaPath === undefined) {
        throw usageError("one of --stdin and --media-path is needed");
      }
      // The line break that echo and heredocs add at the end is not part of the text.
      const content = options.stdin
        ? (await readText(io, TEXT_MAX_BYTES, "--stdin", "; send a file with --media-path")).replace(
          /[\r\n]+$/,
          "",
        )
        : "";
      if (options.stdin && content.trim() === "" && mediaPath === undefined) {
        throw usageError("--stdin: there was no text on standard input");
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
  listCommand({
    name: "list",
    endpoint: "GET /api/messages/inbound",
    columns: COLUMNS,
    about: "List inbound messages, newest first",
    options: {
      ...FILTERS,
      status: {
        flags: "--status <status>",
        about: "in this status",
        type: "text",
        choices: INBOUND_STATUSES,
        multiple: true,
      },
      receivedFrom: { flags: "--received-from <time>", about: "received at or after", type: "time" },
      receivedTo: { flags: "--received-to <time>", about: "received at or before", type: "time" },
      ...pageOptions(100),
    },
    examples: ["message list --session-key local:$session", "message list --status failed"],
  }),
  listCommand({
    name: "list-outbound",
    endpoint: "GET /api/messages/outbound",
    columns: OUTBOUND_COLUMNS,
    about: "List outbound messages, newest first",
    options: {
      ...FILTERS,
      status: {
        flags: "--status <status>",
        about: "in this status",
        type: "text",
        choices: OUTBOUND_STATUSES,
        multiple: true,
      },
      sourceType: {
        flags: "--source-type <type>",
        about: "said by",
        type: "text",
        choices: SOURCE_TYPES,
        multiple: true,
      },
      sourceId: {
        flags: "--source-id <id>",
        completion: "worker",
        about: "said by this worker",
        type: "text",
      },
      sentFrom: { flags: "--sent-from <time>", about: "sent at or after", type: "time" },
      sentTo: { flags: "--sent-to <time>", about: "sent at or before", type: "time" },
      ...pageOptions(100),
    },
    examples: ["message list-outbound --source-type worker", "message list-outbound --status failed"],
  }),
  command({
    name: "resend",
    about: "Send messages again whose delivery was given up: one, or all of a platform",
    args: ["[id]"],
    refs: { id: "outbound" },
    options: {
      platform: {
        flags: "--platform <name>",
        completion: "platform",
        about: "all to this platform",
        type: "text",
      },
      since: { flags: "--since <time>", about: "of those, what was said at or after", type: "time" },
    },
    examples: [
      "message resend 01a1fd23-4c79-764a-afab-047dd52450e4",
      "message resend --platform phone --since -2d",
    ],
    async run({ client, out, args: [id], options: { platform, since }, note }) {
      if (platform === undefined) {
        if (id === undefined) throw usageError("one of <id> and --platform is needed");
        if (since !== undefined) throw usageError("--since goes with --platform");
        const { json, value } = await client.call("POST /api/messages/:id/resend", { params: { id } });
        return out.object(json, value);
      }
      if (id !== undefined) throw usageError("<id> and --platform do not go together");
      const body = { platform, ...toFields({ since }) };
      const { json, value } = await client.call("POST /api/messages/resend", { body });
      out.object(json, value, String(value.resent));
      if (value.more) note("There are more: send them by the same command");
    },
  }),
  command({
    name: "trace",
    about: "Follow a message: parts, routing and why, tasks, executions, replies, with times",
    args: ["id"],
    refs: { id: "message" },
    options: {},
    examples: ["message trace 01a1fd23-4c79-764a-afab-047dd52450e4"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/messages/:id/trace", { params: { id } });
      await out.list(json, buildSteps(value), TRACE_COLUMNS);
    },
  }),
];

const TRACE_COLUMNS = [
  clockField("at"),
  field("step"),
  idField(),
  statusField(),
  field("took_ms"),
  field("what"),
];

type Steps = Record<"parts" | "routing" | "tasks" | "executions" | "replies", Row[]>;

/** The trace as one list by time, for reading from top to bottom. */
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

// A file without text is shown by its name.
function findText(row: Row): unknown {
  return row.content || MEDIA.value(row);
}

function findOutcome(row: Row): unknown {
  return row.failure ? `${row.failure} ${row.error}`.trim() : row.result || row.instruction;
}

const BAR_CELLS = 30;

/** Draws how far an upload is, over and over on one line; nothing without a terminal. */
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
