import { load } from "../../../src/base/lazy_import.ts";
import { conflict, notFound, ServiceError } from "../../../src/domain/call/error.ts";
import { parseChatCommand } from "../../../src/domain/chat/chat_command.ts";
import { normalizeName } from "../../../src/domain/call/name_key.ts";
import type { Client } from "../../client/client.ts";
import { resolveRef } from "../../client/resource_ref.ts";
import { usageError } from "../../terminal/exit.ts";
import { readTextArgument } from "../../terminal/input_text.ts";
import { type AnyCommand, command, option } from "../command.ts";
import { parseTimeout, TIMEOUT } from "../duration.ts";
import { ChatTurn } from "./chat_turn.ts";

const TIMEOUT_DEFAULT_MS = 600_000;

export const group: AnyCommand = command({
  name: "chat",
  about: "Send a chat message and print the reply, or open a prompt",
  args: ["[text|-]"],
  options: {
    session: option.text(
      "--session <id|name>",
      "conversation to use, created if missing; a new one by default",
      {
        completion: "session_name",
      },
    ),
    last: option.flag("--last", "continue your latest conversation"),
    worker: option.text("--worker <id|name>", "worker to talk to", { completion: "worker" }),
    replyTo: option.text(
      "--reply-to <id>",
      "message to reply to, e.g. a question; requires --session or --last",
    ),
    timeout: { ...TIMEOUT, default: "10m" },
  },
  examples: [
    "chat '@ada what is new?'",
    "chat --session work --worker Ada 'and now in English'",
    "chat --last 'and in one sentence'",
    "chat --session work --reply-to 01a1fd23-4c79-764a-afab-047dd52450e4 Yes",
    "chat - < question.txt",
    "chat",
  ],
  async run(context) {
    const { client, args: [given], options, io, reportId } = context;
    const limitMs = parseTimeout(options.timeout, TIMEOUT_DEFAULT_MS);
    const isPrompt = given === undefined;
    if (isPrompt && !(io.inIsTerminal && io.errIsTerminal)) {
      throw usageError("a text is required without a terminal. Use - to read it from stdin.");
    }
    const text = isPrompt ? undefined : await readTextArgument(io, given, "text");
    if (options.last && options.session !== undefined) {
      throw usageError("--last and --session cannot be used together");
    }
    const { replyTo } = options;
    if (replyTo !== undefined && (isPrompt || !options.last && options.session === undefined)) {
      throw usageError("--reply-to requires a text, and --session or --last");
    }
    const known = options.last
      ? await findLastSession(client)
      : options.session === undefined
      ? null
      : await findSession(client, options.session);
    const mention = options.worker === undefined ? "" : `@${await findMention(client, options.worker)} `;
    if (text === undefined) {
      const { runChatLoop } = await load<typeof import("./chat_loop.ts")>("./chat_loop.ts", import.meta.url);
      const begin = (line: string) => createSession(client, line);
      return await runChatLoop(context, { known, mention, limitMs, begin });
    }
    const session = known ?? await createSession(client, text);
    if (known === null) reportId("session", session);
    const words = replyTo === undefined && parseChatCommand(text) === null ? mention + text : text;
    const accepted = (id: string) => reportId("accepted", id);
    await new ChatTurn(context, session).say(words, limitMs, { accepted, replyTo });
  },
});

const NAME_MAX_CHARACTERS = 40;

/** Creates a session for a text. Its name is the start of the text. */
async function createSession(client: Client, text: string): Promise<string> {
  // A name has no control characters and no line breaks.
  const words = text.replace(/[\p{C}\p{Z}\s]+/gu, " ").trim();
  const short = [...words].length <= NAME_MAX_CHARACTERS
    ? words
    : `${[...words].slice(0, NAME_MAX_CHARACTERS - 1).join("").trimEnd()}…`;
  const body = short === "" ? {} : { name: short };
  return (await client.call("POST /api/local/sessions", { body })).value.id;
}

async function findLastSession(client: Client): Promise<string> {
  const { value: [last] } = await client.call("GET /api/local/sessions", {
    query: { last: true, page_size: 1 },
  });
  if (last === undefined) throw notFound("session", "--last");
  return last.id;
}

/** Finds a session by ID, name or ID ending. Creates it for an unknown name. */
async function findSession(client: Client, wanted: string): Promise<string> {
  try {
    return await resolveRef(client, "session", wanted);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "not_found") throw error;
  }
  return (await client.call("POST /api/local/sessions", { body: { name: wanted } })).value.id;
}

/** Finds the name that mentions a worker. Throws if several workers have it, since a mention then reaches none. */
async function findMention(client: Client, wanted: string): Promise<string> {
  const id = await resolveRef(client, "worker", wanted.replace(/^@/, ""));
  const { name } = (await client.call("GET /api/workers/:id", { params: { id } })).value;
  const { value } = await client.call("GET /api/workers", { query: { name, page_size: 200 } });
  const namesakes = value.filter((worker) => normalizeName(worker.name) === normalizeName(name));
  if (namesakes.length > 1) {
    throw conflict(
      `Cannot talk to ${name}: ${namesakes.length} workers have this name. Rename all but one.`,
    );
  }
  return name;
}
