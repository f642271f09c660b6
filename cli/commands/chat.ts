import { createParser } from "eventsource-parser";
import { conflict, notFound, ServiceError } from "../../src/domain/error.ts";
import { nameKey } from "../../src/domain/name.ts";
import type { Client } from "../client.ts";
import { type AnyCommand, command, type Context } from "../command.ts";
import { TIMEOUT, timeoutMs } from "../duration.ts";
import { EXIT, Exit, usage } from "../exit.ts";
import { visible } from "../visible.ts";

const SESSION_NAME = "cli";
const TIMEOUT_DEFAULT_MS = 600_000;
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

export const chatCommand: AnyCommand = command({
  name: "chat",
  about: "Send a chat message and print the reply as it comes",
  args: ["text"],
  options: {
    session: {
      flags: "--session <id|name>",
      offers: "session_name",
      about: "the session to talk in; made when no session has the name",
      type: "text",
    },
    worker: {
      flags: "--worker <id|name>",
      offers: "worker_name",
      about: "talk to this worker",
      type: "text",
    },
    timeout: { ...TIMEOUT, default: "10m" },
  },
  examples: ["chat '@ada what is new?'", "chat --session work --worker Ada 'and now in English'"],
  async run(context) {
    const { client, args: [text = ""], options } = context;
    if (text.trim() === "") throw usage("the text must not be empty");
    const limitMs = timeoutMs(options.timeout, TIMEOUT_DEFAULT_MS);
    const id = await findSession(client, options.session ?? SESSION_NAME);
    const content = options.worker === undefined
      ? text
      : `@${await mentionOf(client, options.worker)} ${text}`;
    const stream = await client.open("GET /api/local/sessions/:id/stream", { params: { id } });
    const { value } = await client.call("POST /api/local/sessions/:id/messages", {
      params: { id },
      body: { content },
    });
    await printReplies(context, stream, value.message_id, limitMs);
    await judge(client, value.message_id);
  },
});

async function findSession(client: Client, wanted: string): Promise<string> {
  if (ID.test(wanted)) {
    return (await client.call("GET /api/local/sessions/:id", { params: { id: wanted } })).value.id;
  }
  let cursor: string | undefined;
  do {
    const { value, headers } = await client.call("GET /api/local/sessions", {
      query: { page_size: 100, cursor },
    });
    const found = value.find((session) => session.name === wanted);
    if (found !== undefined) return found.id;
    cursor = /[?&]cursor=([^>&]+)/.exec(headers.get("link") ?? "")?.[1];
  } while (cursor !== undefined);
  return (await client.call("POST /api/local/sessions", { body: { name: wanted } })).value.id;
}

/** The name for a mention of the worker. Throws when no worker has it, or several do: a mention would reach none of them. */
async function mentionOf(client: Client, wanted: string): Promise<string> {
  const name = ID.test(wanted)
    ? (await client.call("GET /api/workers/:id", { params: { id: wanted } })).value.name
    : wanted.replace(/^@/, "");
  const { value } = await client.call("GET /api/workers", { query: { name, page_size: 200 } });
  const named = value.filter((worker) => nameKey(worker.name) === nameKey(name));
  if (named.length === 0) throw notFound("worker", wanted);
  if (named.length > 1) {
    throw conflict(`Cannot talk to ${name}: ${named.length} workers are called that; rename all but one`);
  }
  return name;
}

/** Ends with 8 when what the message brought about failed or was cancelled (contract 6). */
async function judge(client: Client, messageId: string): Promise<void> {
  const trace = await client.call("GET /api/messages/:id/trace", { params: { id: messageId } }).catch(
    (error) => {
      // A token that may chat need not be one that may look into what came of it.
      if (error instanceof ServiceError && error.code === "forbidden") return null;
      throw error;
    },
  );
  const { tasks = [], parts = [] } = trace?.value ?? {};
  const task = tasks.find(({ status }) => status === "failed" || status === "cancelled");
  if (task !== undefined) {
    throw new Exit(EXIT.awaitedFailed, `task ${task.id} ${task.status}: ${task.reason}`);
  }
  if (parts.some(({ status }) => status === "failed")) {
    throw new Exit(EXIT.awaitedFailed, `message ${messageId} failed`);
  }
}

/** Prints the messages of the session until nothing is in progress in it. */
async function printReplies(
  context: Context,
  stream: Response,
  messageId: string,
  limitMs: number,
): Promise<void> {
  const { out, note, io } = context;
  let over = false;
  let replies = 0;
  const parser = createParser({
    onEvent({ event, data }) {
      if (over) return;
      const said = JSON.parse(data);
      if (event === "message") {
        replies++;
        if (out.format === "json") out.line(data);
        else if (out.format === "ids") out.line(said.id);
        else {
          if (io.outIsTerminal && said.worker_name) note(out.style.dim(`${said.worker_name}:`));
          // What an agent says must not drive the operator's terminal.
          out.line(io.outIsTerminal ? visible(said.content) : said.content);
        }
      } else if (event === "status" && io.errIsTerminal && said.state === "working") {
        note(out.style.dim(`${said.worker_name} is working …`));
      } else if (event === "status" && said.state === "idle") over = true;
      else if (event === "end") {
        throw new ServiceError("unavailable", `The conversation ended before the reply came: ${said.reason}`);
      }
    },
  });
  const decoder = new TextDecoder();
  const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
  const late = setTimeout(() => void reader.cancel("late"), limitMs);
  try {
    while (!over) {
      const { done, value } = await reader.read();
      if (done) {
        throw new Exit(
          EXIT.timedOut,
          `No end of it after ${limitMs / 1000} s; message ${messageId} goes on`,
        );
      }
      parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    clearTimeout(late);
    await reader.cancel().catch(() => {});
  }
  if (replies === 0) note("no reply");
}
