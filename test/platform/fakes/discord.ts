import { FakeGateway } from "./discord_gateway.ts";
import { dropConnection, FakeServer, type Json } from "./server.ts";

const BOT = { id: "99", username: "svc", bot: true };
const TOKEN = "discord-token-1";
const EPOCH_MS = 1_420_070_400_000n;
const FIELDS = [
  "content",
  "nonce",
  "enforce_nonce",
  "allowed_mentions",
  "message_reference",
  "components",
  "flags",
];
/** Rate limit of a channel. */
const BURST = 5;

/** A strict fake of Discord's API and gateway. */
export class FakeDiscord extends FakeServer<"lost" | "slow" | "global" | number> {
  readonly token = TOKEN;
  readonly bot = BOT.id;
  readonly gateway: FakeGateway;
  /** Messages above the rate limit. */
  tooMany = 0;
  readonly typing: string[] = [];
  /** History of each channel. */
  readonly said = new Map<string, Json[]>();
  readonly channels = new Map<string, Json>();
  readonly callbacks: Json[] = [];
  /** Registered commands, also those of other programs. */
  readonly commands: Json[] = [];
  /** Number of registrations. */
  commandsMade = 0;
  /** Refuses registrations. */
  isWithoutCommands = false;
  /** Number of requests for a history that fail first. */
  broken = 0;
  /** Number of readable pages of a channel, and the answer after them. */
  readonly breaking = new Map<string, { pages: number; then: () => Response }>();
  /** Remaining sessions of today, and the ms until the limit resets. */
  remaining = 1000;
  resetAfterMs = 60_000;
  /** Pause in seconds that the answer to the next message names. */
  nextResetAfter = "";
  /** Length of the rate limit window. The real one is about 5 s. */
  bucketMs = 400;
  readonly #buckets = new Map<string, { left: number; until: number }>();
  readonly #interactions = new Map<string, { token: string; at: number; message: string }>();

  constructor() {
    super();
    this.gateway = new FakeGateway(
      BOT,
      () => this.revoked ? "" : TOKEN,
      () => `${this.socketUrl}/gateway/`,
    );
  }

  /** Creates an id of Discord: the time and a number. */
  id(at = Date.now()): string {
    return String((BigInt(at) - EPOCH_MS) << 22n | BigInt(Number(this.createId()) % 4096));
  }

  /** Presses a button of a message, or without one uses a command. */
  press(interaction: Json, message = ""): void {
    this.#interactions.set(interaction.id, { token: interaction.token, at: performance.now(), message });
    this.gateway.event("INTERACTION_CREATE", interaction);
  }

  protected async answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === "/gateway/") return this.gateway.upgrade(request, url);
    const authorization = request.headers.get("authorization");
    const [, file] = /^\/attachments\/(\w+)$/.exec(url.pathname) ?? [];
    if (file !== undefined) return this.#download(file, authorization);
    if (!request.headers.get("user-agent")?.startsWith("DiscordBot (")) this.faults.push("no user agent");
    const [, path = ""] = /^\/api\/v10(\/.*)$/.exec(url.pathname) ?? [];
    const [, id = "", token = ""] = /^\/interactions\/(\d+)\/([\w.-]+)\/callback$/.exec(path) ?? [];
    if (id !== "") return this.#callback(id, token, authorization, await request.json());
    if (this.revoked || authorization !== `Bot ${TOKEN}`) return no(401, 0, "401: Unauthorized");
    return await this.#call(`${request.method} ${path}`, url, request);
  }

  async #call(route: string, url: URL, request: Request): Promise<Response> {
    if (route === "GET /users/@me") return Response.json(BOT);
    if (route === "GET /applications/@me") {
      return Response.json({ id: BOT.id, flags: this.gateway.isWithoutContent ? 0 : 1 << 19 });
    }
    if (route === "GET /gateway/bot") {
      const { remaining, resetAfterMs: reset_after } = this;
      const limit = { total: 1000, remaining, reset_after, max_concurrency: 1 };
      const address = `${this.socketUrl}/gateway`;
      return Response.json({ url: address, shards: 1, session_start_limit: limit });
    }
    if (route === `GET /applications/${BOT.id}/commands`) return Response.json(this.commands);
    if (route === `POST /applications/${BOT.id}/commands`) return this.#offer(await request.json());
    const [, method = "", channel = "", rest = ""] = /^(\w+) \/channels\/(-?\w+)(?:\/(.*))?$/.exec(route) ??
      [];
    const [, own] = /^messages\/(\w+)$/.exec(rest) ?? [];
    if (method === "GET" && rest === "") return this.#channel(channel);
    if (method === "GET" && rest === "messages") return this.#history(channel, url.searchParams);
    if (method === "POST" && rest === "messages") return await this.#post(channel, request);
    if (method === "POST" && rest === "typing") {
      this.typing.push(channel);
      return new Response(null, { status: 204 });
    }
    if (method === "PATCH" && own !== undefined) {
      const fields = await request.json();
      return this.#change(channel, own, (message) => Object.assign(message, fields));
    }
    if (method === "DELETE" && own !== undefined) {
      return this.#change(channel, own, (message) => message.deleted = true);
    }
    this.faults.push(`route ${route}`);
    return no(404, 0, "404: Not Found");
  }

  /** Creates or replaces a command. Discord drops empty and false fields. */
  #offer(command: Json): Response {
    if (this.isWithoutCommands) return no(403, 50001, "Missing Access");
    const fault = commandFault(command);
    if (fault !== "") {
      this.faults.push(fault);
      return no(400, 50035, `Invalid Form Body: ${fault}`);
    }
    const { options, ...rest } = command;
    const made = { ...rest, id: this.id(), version: "1", ...(options.length === 0 ? {} : { options }) };
    const at = this.commands.findIndex(({ name }) => name === command.name);
    if (at < 0) this.commands.push(made);
    else this.commands[at] = made;
    this.commandsMade++;
    return Response.json(made, { status: at < 0 ? 201 : 200 });
  }

  #channel(id: string): Response {
    const channel = this.channels.get(id);
    return channel === undefined ? no(404, 10003, "Unknown Channel") : Response.json({ id, ...channel });
  }

  #history(channel: string, query: URLSearchParams): Response {
    if (this.broken-- > 0) return no(500, 0, "Internal Server Error");
    const breaking = this.breaking.get(channel);
    if (breaking !== undefined && breaking.pages-- <= 0) return breaking.then();
    const after = BigInt(query.get("after") ?? 0);
    const limit = Number(query.get("limit") ?? 50);
    if (limit > 100) return no(400, 50035, "Invalid Form Body");
    const messages = (this.said.get(channel) ?? []).filter(({ id }) =>
      !/^\d+$/.test(id) || BigInt(id) > after
    )
      .slice(0, limit);
    // Newest first, without the id of the server.
    return Response.json(messages.reverse().map(({ guild_id: _none, member: _nobody, ...rest }) => rest));
  }

  async #post(channel: string, request: Request): Promise<Response> {
    const bucket = this.#bucket(channel);
    if (bucket !== null) return bucket;
    const { fields, file } = await readBody(request);
    const mode = this.modes.shift();
    if (mode === "global") return tooMuch(0.5, true);
    if (typeof mode === "number") return no(mode, 0, "Internal Server Error");
    const fault = faultOf(fields, file);
    if (fault !== "") {
      this.faults.push(fault);
      return no(400, 50035, `Invalid Form Body: ${fault}`);
    }
    let message = this.sent.find((one) =>
      fields.enforce_nonce === true && one.nonce === fields.nonce && one.channel_id === channel
    );
    if (message === undefined) {
      message = { ...fields, id: this.id(), channel_id: channel, author: BOT, deleted: false };
      this.sent.push(message);
      if (file !== null) {
        const text = await file.text();
        this.uploads.push({ name: file.name, text, chat: channel });
        message.file = file.name;
      }
    }
    if (mode === "lost") return dropConnection();
    if (mode === "slow") await new Promise((resolve) => setTimeout(resolve, 1_500));
    const now = this.#buckets.get(channel);
    const told = this.nextResetAfter;
    this.nextResetAfter = "";
    return Response.json(message, {
      headers: {
        "x-ratelimit-limit": String(BURST),
        "x-ratelimit-remaining": told === "" ? String(now?.left ?? 0) : "0",
        "x-ratelimit-reset-after": told ||
          String(Math.max(0, ((now?.until ?? 0) - performance.now()) / 1000)),
        "x-ratelimit-bucket": "b1",
      },
    });
  }

  #bucket(channel: string): Response | null {
    if (this.limited.has(channel)) return tooMuch(1, false);
    const now = performance.now();
    let bucket = this.#buckets.get(channel);
    if (bucket === undefined || bucket.until <= now) {
      bucket = { left: BURST, until: now + this.bucketMs };
      this.#buckets.set(channel, bucket);
    }
    if (bucket.left-- > 0) return null;
    this.tooMany++;
    return tooMuch((bucket.until - now) / 1000, false);
  }

  #change(channel: string, id: string, change: (message: Json) => void): Response {
    const message = this.sent.find((one) => one.channel_id === channel && one.id === id && !one.deleted);
    if (message === undefined) return no(404, 10008, "Unknown Message");
    change(message);
    return Response.json(message);
  }

  #callback(id: string, token: string, authorization: string | null, body: Json): Response {
    if (authorization !== null) this.faults.push("the key was sent with an interaction");
    const interaction = this.#interactions.get(id);
    const isLate = interaction === undefined || performance.now() - interaction.at > 3_000;
    if (isLate || interaction.token !== token) return no(404, 10062, "Unknown interaction");
    this.#interactions.delete(id);
    this.callbacks.push(body);
    const message = this.sent.find((one) => one.id === interaction.message);
    const alone = body.type === 4 && (body.data.flags !== 64 || !body.data.content);
    if (alone || JSON.stringify(body.data?.allowed_mentions?.parse ?? []) !== "[]") {
      this.faults.push("an answer to all");
    }
    if (body.type === 7 && message !== undefined) {
      Object.assign(message, { old: message.old ?? message.components, ...body.data });
    } else if (body.type !== 4) this.faults.push(`callback of type ${body.type}`);
    return new Response(null, { status: 204 });
  }

  #download(id: string, authorization: string | null): Response {
    if (authorization !== null) this.faults.push("the key was sent for a file");
    return this.download(id);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.gateway.close();
    await super[Symbol.asyncDispose]();
  }
}

async function readBody(request: Request): Promise<{ fields: Json; file: File | null }> {
  if (request.headers.get("content-type") === "application/json") {
    return { fields: await request.json(), file: null };
  }
  const form = await request.formData();
  return { fields: JSON.parse(String(form.get("payload_json"))), file: form.get("files[0]") as File | null };
}

/** Finds what Discord would refuse, or what would do harm. Returns "" for neither. */
function faultOf(fields: Json, file: File | null): string {
  const { content = "", nonce, allowed_mentions, components = [], message_reference } = fields;
  const unknown = Object.keys(fields).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) return `the field ${unknown}`;
  if (content.trim() === "" && file === null) return "an empty message";
  if (content.length > 2000) return `${content.length} characters`;
  if (file !== null && file.size > 10_000_000) return "a file that is too large";
  if (nonce !== undefined && (typeof nonce !== "string" || nonce.length > 25)) return `the nonce ${nonce}`;
  if (JSON.stringify(allowed_mentions?.parse) !== "[]") return "everybody can be mentioned";
  if (message_reference !== undefined && message_reference.fail_if_not_exists !== false) {
    return "a reply fails when the message is gone";
  }
  const ids = components.flatMap((row: Json) => row.components).map(({ custom_id }: Json) => custom_id);
  if (components.length > 5 || new Set(ids).size !== ids.length) return "components";
  for (const row of components) {
    if (row.type !== 1 || row.components.length > 5) return "a row of components";
    for (const { type, style, label, custom_id } of row.components) {
      if (type !== 2 || style !== 1 || label === "" || label.length > 80 || custom_id.length > 100) {
        return "a button";
      }
    }
  }
  return "";
}

function commandFault({ name, description, type, options, ...more }: Json): string {
  if (Object.keys(more).length > 0) return `the field ${Object.keys(more)} of a command`;
  const isNamed = (one: Json) =>
    /^[-_\p{Ll}\p{N}]{1,32}$/u.test(one.name) && one.description?.length >= 1 &&
    one.description.length <= 100;
  if (type !== 1 || !isNamed({ name, description })) return `the command ${name}`;
  const isGood = options.every((one: Json) =>
    one.type === 3 && isNamed(one) && typeof one.required === "boolean"
  );
  return isGood && options.length <= 25 ? "" : `the options of ${name}`;
}

function no(status: number, code: number, message: string): Response {
  return Response.json({ code, message }, { status });
}

function tooMuch(seconds: number, isGlobal: boolean): Response {
  return Response.json({ message: "You are being rate limited.", retry_after: seconds, global: isGlobal }, {
    status: 429,
    headers: {
      "retry-after": String(Math.ceil(seconds)),
      "x-ratelimit-scope": isGlobal ? "global" : "user",
      ...(isGlobal ? { "x-ratelimit-global": "true" } : {}),
    },
  });
}
