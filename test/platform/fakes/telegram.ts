// deno-lint-ignore no-explicit-any
type Json = any;

const TOKEN = "123:abc";

/** A server of the Bot API, strict about what it takes, with the switches that tests need. */
export class FakeTelegram {
  readonly token = TOKEN;
  /** Messages that the bot sent, as they were taken. */
  readonly sent: Json[] = [];
  readonly faults: string[] = [];
  /** How the next sends are answered; then they are taken. `lost`: taken, and the connection is dropped. */
  readonly modes: ("lost" | { code: number; retryAfter?: number })[] = [];
  revoked = false;
  /** Chats that say "too much". */
  readonly limited = new Set<string>();
  polls = 0;
  #updates: Json[] = [];
  #next = 1;
  #wake: (() => void)[] = [];
  #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Somebody says something; answers the message's id. */
  say(
    text: string,
    { chat = 7, type = "private", from = 7, id = this.#next, more = {}, kind = "message", bot = false } = {},
  ): number {
    const sender = { id: from, is_bot: bot, first_name: `User ${from}` };
    this.push({ [kind]: { message_id: id, date: 1, chat: { id: chat, type }, from: sender, text, ...more } });
    return id;
  }

  push(update: Json): void {
    this.#updates.push({ update_id: this.#next++, ...update });
    for (const wake of this.#wake.splice(0)) wake();
  }

  async #answer(request: Request): Promise<Response> {
    const [, token = "", method = ""] = /^\/bot([^/]+)\/(\w+)$/.exec(new URL(request.url).pathname) ?? [];
    if (token !== TOKEN || this.revoked) return refuse(401, "Unauthorized");
    if (request.headers.get("content-type") !== "application/json") this.faults.push("content type");
    const body = await request.json();
    if (method === "getMe") return ok({ id: 99, is_bot: true, first_name: "svc", username: "svc_bot" });
    if (method === "getUpdates") return ok(await this.#poll(body, request.signal));
    if (method === "sendMessage") return this.#send(body);
    this.faults.push(`method ${method}`);
    return refuse(404, "Not Found");
  }

  async #poll({ offset = 0, allowed_updates }: Json, signal: AbortSignal): Promise<Json[]> {
    this.polls++;
    this.#updates = this.#updates.filter(({ update_id }) => update_id >= offset);
    const wanted = () => this.#updates.filter((one) => allowed_updates.some((kind: string) => kind in one));
    if (wanted().length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake.push(resolve);
        signal.addEventListener("abort", () => resolve());
        setTimeout(resolve, 2_000);
      });
    }
    return wanted();
  }

  #send(body: Json): Response {
    const { chat_id, text, parse_mode } = body;
    if (this.limited.has(String(chat_id))) return refuse(429, "Too Many Requests: retry after 60", 60);
    if (typeof text !== "string" || text === "") return refuse(400, "Bad Request: message text is empty");
    if (parse_mode === "HTML" && !isHtml(text)) {
      return refuse(400, "Bad Request: can't parse entities: unclosed tag");
    }
    if (text.replace(/<[^>]+>/g, "").length > 4096) return refuse(400, "Bad Request: message is too long");
    const mode = this.modes.shift();
    if (typeof mode === "object") return refuse(mode.code, "Refused", mode.retryAfter);
    this.sent.push(body);
    if (mode === "lost") {
      return new Response(new ReadableStream({ start: (one) => one.error(new Error("lost")) }), {
        headers: { "content-length": "10" },
      });
    }
    return ok({ message_id: 1000 + this.sent.length, chat: { id: chat_id }, text });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const wake of this.#wake.splice(0)) wake();
    await this.#server.shutdown();
  }
}

function ok(result: Json): Response {
  return Response.json({ ok: true, result });
}

function refuse(code: number, description: string, retryAfter?: number): Response {
  const parameters = retryAfter === undefined ? {} : { parameters: { retry_after: retryAfter } };
  return Response.json({ ok: false, error_code: code, description, ...parameters }, { status: code });
}

/** Every tag is known and closed, and nothing else looks like one. */
function isHtml(text: string): boolean {
  const open: string[] = [];
  for (const [, close, tag = ""] of text.matchAll(/<(\/?)(\w*)[^>]*>?/g)) {
    if (!["b", "i", "s", "code", "pre", "a"].includes(tag)) return false;
    if (close === "") open.push(tag);
    else if (open.pop() !== tag) return false;
  }
  return open.length === 0 && !/&(?!amp;|lt;|gt;|quot;)/.test(text);
}
