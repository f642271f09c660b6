import { createParser } from "eventsource-parser";
import { ServiceError } from "../../src/domain/error.ts";
import type { Client } from "../client.ts";
import { type AnyCommand, command, type Context } from "../command.ts";
import { EXIT, Exit, usage } from "../exit.ts";

const SESSION_NAME = "cli";
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

export const chatCommand: AnyCommand = command({
  name: "chat",
  about: "Send a chat message and print the reply as it comes",
  args: ["text"],
  options: {
    session: {
      flags: "--session <id|name>",
      about: "the session to talk in; made when no session has the name",
      type: "text",
    },
    worker: { flags: "--worker <id|name>", about: "talk to this worker", type: "text" },
    timeout: {
      flags: "--timeout <seconds>",
      about: "stop waiting for a reply after so long",
      type: "int",
      standard: 600,
    },
  },
  examples: ["chat '@ada what is new?'", "chat --session work --worker Ada 'and now in English'"],
  async run(context) {
    const { client, args: [text = ""], options } = context;
    if (text.trim() === "") throw usage("the text must not be empty");
    const id = await findSession(client, options.session ?? SESSION_NAME);
    const content = options.worker === undefined
      ? text
      : `@${await workerName(client, options.worker)} ${text}`;
    const stream = await client.open("GET /api/local/sessions/:id/stream", { params: { id } });
    const { value } = await client.call("POST /api/local/sessions/:id/messages", {
      params: { id },
      body: { content },
    });
    await printReplies(context, stream, value.message_id, (options.timeout ?? 600) * 1000);
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

async function workerName(client: Client, wanted: string): Promise<string> {
  if (ID.test(wanted)) {
    return (await client.call("GET /api/workers/:id", { params: { id: wanted } })).value.name;
  }
  return wanted;
}

/** Prints what is said in the session until nothing more is going on in it. */
async function printReplies(
  context: Context,
  stream: Response,
  messageId: string,
  timeoutMs: number,
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
          out.line(said.content);
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
  const late = setTimeout(() => void reader.cancel("late"), timeoutMs);
  try {
    while (!over) {
      const { done, value } = await reader.read();
      if (done) {
        throw new Exit(
          EXIT.timedOut,
          `No end of it after ${timeoutMs / 1000} s; message ${messageId} goes on`,
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
