import { load } from "../../src/base/load.ts";
import { conflict, notFound, ServiceError } from "../../src/domain/error.ts";
import { nameKey } from "../../src/domain/name.ts";
import type { Client } from "../client.ts";
import { type AnyCommand, command, type Context } from "../command.ts";
import { TIMEOUT, timeoutMs } from "../duration.ts";
import { Conversation } from "../conversation.ts";
import { Exit, usage } from "../exit.ts";
import { readText } from "../prompt.ts";
import { visible } from "../visible.ts";

const SESSION_NAME = "cli";
const TIMEOUT_DEFAULT_MS = 600_000;
// What the server takes as text (contract 1).
const CONTENT_MAX_BYTES = 256 * 1024;
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

export const chatCommand: AnyCommand = command({
  name: "chat",
  about:
    "Send a chat message and print the reply as it comes; without a text, on a terminal, a prompt that stays",
  args: ["[text|-]"],
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
  examples: [
    "chat '@ada what is new?'",
    "chat --session work --worker Ada 'and now in English'",
    "chat - < question.txt",
    "chat",
  ],
  async run(context) {
    const { client, args: [given], options, io } = context;
    const limitMs = timeoutMs(options.timeout, TIMEOUT_DEFAULT_MS);
    const asks = given === undefined;
    if (asks && !(io.inIsTerminal && io.errIsTerminal)) {
      throw usage("a text is needed: svc ctl chat <text>, or - to read it from standard input");
    }
    const text = given === "-" ? (await readText(io, CONTENT_MAX_BYTES, "-")).replace(/[\r\n]+$/, "") : given;
    if (!asks && text?.trim() === "") throw usage("the text must not be empty");
    const name = options.session ?? SESSION_NAME;
    const conversation = new Conversation(context, await findSession(client, name));
    const mention = options.worker === undefined ? "" : `@${await mentionOf(client, options.worker)} `;
    if (text === undefined) return await converse(context, conversation, { mention, limitMs, name });
    await conversation.say(mention + text, limitMs);
  },
});

/** Asks on the terminal again and again. What fails is said and ends nothing; Ctrl-C ends the run, Ctrl-D the chat. */
async function converse(
  { io, note, out }: Context,
  conversation: Conversation,
  { mention, limitMs, name }: { mention: string; limitMs: number; name: string },
): Promise<void> {
  const { ChatPrompt } = await load<typeof import("../chat_prompt.ts")>("../chat_prompt.ts", import.meta.url);
  note(out.style.dim(`Session ${visible(name)}. Ctrl-C stops a run, Ctrl-D ends the chat.`));
  using prompt = new ChatPrompt(io, "> ");
  let stopped = false;
  prompt.onInterrupt = () => {
    stopped = true;
    void conversation.stop().then(
      (count) => note(count === 0 ? "nothing runs yet" : "stopped; write on in the same conversation"),
      (error) => note(`svc: ${visible(String(error.message))}`),
    );
  };
  while (true) {
    const line = await prompt.next();
    if (line === null) break;
    if (line.trim() === "") continue;
    stopped = false;
    try {
      await conversation.say(mention + line, limitMs);
    } catch (error) {
      const goesOn = error instanceof Exit ||
        error instanceof ServiceError && error.code !== "unauthenticated";
      if (!goesOn || !(error instanceof Error)) throw error;
      // Whoever stopped it knows.
      if (!stopped) note(out.style.red(`svc: ${visible(error.message)}`));
    }
  }
  note(`\nto go on: svc ctl chat --session ${shellWord(name)}`);
}

function shellWord(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${visible(name).replaceAll("'", "'\\''")}'`;
}

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
