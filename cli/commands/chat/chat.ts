import { load } from "../../../src/base/load.ts";
import { conflict, notFound, ServiceError } from "../../../src/domain/error.ts";
import { nameKey } from "../../../src/domain/name.ts";
import type { Client } from "../../client/client.ts";
import { type AnyCommand, command } from "../command.ts";
import { parseTimeout, TIMEOUT } from "../duration.ts";
import { ChatTurn } from "./chat_turn.ts";
import { usageError } from "../../terminal/exit.ts";
import { readText } from "../../terminal/prompt.ts";
import { resolveRef } from "../../client/resource_ref.ts";

const TIMEOUT_DEFAULT_MS = 600_000;
// What the server takes as text (contract 1).
const CONTENT_MAX_BYTES = 256 * 1024;

export const chatCommand: AnyCommand = command({
  name: "chat",
  about:
    "Send a chat message and print the reply as it comes; without a text, on a terminal, a prompt that stays",
  args: ["[text|-]"],
  options: {
    session: {
      flags: "--session <id|name>",
      completion: "session_name",
      about:
        "the session to talk in; made when no session has the name; without it each call has one of its own",
      type: "text",
    },
    last: { flags: "--last", about: "go on in the session in which you spoke last", type: "flag" },
    worker: {
      flags: "--worker <id|name>",
      completion: "worker_name",
      about: "talk to this worker",
      type: "text",
    },
    replyTo: {
      flags: "--reply-to <id>",
      about: "the message that this replies to, in --session or --last; a reply to a question answers it",
      type: "text",
    },
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
    const { client, args: [given], options, io, reportId: tell } = context;
    const limitMs = parseTimeout(options.timeout, TIMEOUT_DEFAULT_MS);
    const asks = given === undefined;
    if (asks && !(io.inIsTerminal && io.errIsTerminal)) {
      throw usageError("a text is needed: svc ctl chat <text>, or - to read it from standard input");
    }
    const text = given === "-" ? (await readText(io, CONTENT_MAX_BYTES, "-")).replace(/[\r\n]+$/, "") : given;
    if (!asks && text?.trim() === "") throw usageError("the text must not be empty");
    if (options.last && options.session !== undefined) {
      throw usageError("--last and --session exclude each other");
    }
    const { replyTo } = options;
    if (replyTo !== undefined && (asks || !options.last && options.session === undefined)) {
      throw usageError("--reply-to goes with a text, and with --session or --last");
    }
    const known = options.last
      ? await findLastSession(client)
      : options.session === undefined
      ? null
      : await findSession(client, options.session);
    const mention = options.worker === undefined ? "" : `@${await findMention(client, options.worker)} `;
    if (text === undefined) {
      const { runChatLoop: talk } = await load<typeof import("./chat_loop.ts")>(
        "./chat_loop.ts",
        import.meta.url,
      );
      return await talk(context, { known, mention, limitMs, begin: (line) => createSession(client, line) });
    }
    const session = known ?? await createSession(client, text);
    if (known === null) tell("session", session);
    const words = replyTo === undefined ? mention + text : text;
    const accepted = (id: string) => tell("accepted", id);
    await new ChatTurn(context, session).say(words, limitMs, { accepted, replyTo });
  },
});

const NAME_MAX_CHARACTERS = 40;

/** Makes a session of its own for a text; its name is the first words. */
async function createSession(client: Client, text: string): Promise<string> {
  // What no name may have is left out: it is only a name.
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

/** The session of this id, name or ending of an id; made when it is a name that no session has. */
async function findSession(client: Client, wanted: string): Promise<string> {
  try {
    return await resolveRef(client, "session", wanted);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "not_found") throw error;
  }
  return (await client.call("POST /api/local/sessions", { body: { name: wanted } })).value.id;
}

/** The name for a mention of the worker. Throws when no worker has it, or several do: a mention would reach none of them. */
async function findMention(client: Client, wanted: string): Promise<string> {
  const id = await resolveRef(client, "worker", wanted.replace(/^@/, ""));
  const { name } = (await client.call("GET /api/workers/:id", { params: { id } })).value;
  const { value } = await client.call("GET /api/workers", { query: { name, page_size: 200 } });
  const named = value.filter((worker) => nameKey(worker.name) === nameKey(name));
  if (named.length > 1) {
    throw conflict(`Cannot talk to ${name}: ${named.length} workers are called that; rename all but one`);
  }
  return name;
}
