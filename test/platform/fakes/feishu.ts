import { frameBytes, readFrame } from "./feishu_frame.ts";
import { dropConnection, FakeServer, type Json } from "./server.ts";

const APP_ID = "cli_0123456789abcdef";
const SECRET = "secret-of-feishu";
const BOT = "ou_bot";
const CARD_BYTES = 30 * 1024;
const FILE_BYTES = 30 * 1024 * 1024;
const TAGS = ["markdown", "button"];

interface Event {
  json: Json;
  /** Number of pieces. The last piece comes first. */
  pieces: number;
}

/** A strict fake of Feishu's Open API and long connection. */
export class FakeFeishu extends FakeServer<"lost" | { status: number; code: number; reset?: number }> {
  readonly appId = APP_ID;
  readonly secret = SECRET;
  readonly bot = BOT;
  /** Messages of people, by id. `gone`: deleted. */
  readonly said = new Map<string, { chat: string; thread: string; gone?: boolean }>();
  /** Requested messages by id: the message, and for a forwarded conversation its messages. For `hang`, the fake sends no answer. */
  readonly items = new Map<string, Json[] | "hang">();
  /** Ids of the requested messages. */
  readonly requested: string[] = [];
  /** All reactions ever added, as `<message> <emoji>`, and the number of current ones. */
  readonly reactions: string[] = [];
  readonly reactionsNow = new Map<string, string>();
  /** Answers to presses of buttons. */
  readonly toasts: Json[] = [];
  /** Acknowledgements other than 200. */
  readonly refusals: number[] = [];
  /** Code that refuses edits. 0: none. */
  unchangeable = 0;
  tokens = 0;
  pings = 0;
  isSilent = false;
  /** Ping interval in seconds. */
  pingS = 120;
  #token = "";
  #keys = new Map<string, string>();
  #stored = new Map<string, { name: string; text: string }>();

  override expire(): void {
    this.#token = "";
  }

  /** Sends an event, and again over the next connection until the acknowledgement. */
  event(type: string, event: Json, { id = this.createId("ev"), pieces = 1 } = {}): void {
    const header = { event_id: id, event_type: type, app_id: APP_ID, tenant_key: "t" };
    this.announce(this.createId(`${id}-`), { json: { schema: "2.0", header, event }, pieces });
  }

  protected override transmit(socket: WebSocket, key: string, { json, pieces }: Event): void {
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    const size = Math.ceil(bytes.length / pieces);
    const frames = Array.from({ length: pieces }, (_, seq) => {
      const headers = {
        type: "event",
        message_id: key,
        sum: String(pieces),
        seq: String(seq),
        trace_id: "t",
      };
      return frameBytes({
        service: 33,
        method: 1,
        headers,
        payload: bytes.slice(seq * size, (seq + 1) * size),
      });
    });
    for (const frame of frames.reverse()) socket.send(frame);
  }

  protected async answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === "/ws") return this.#upgrade(request, url.searchParams);
    if (url.pathname === "/callback/ws/endpoint") return this.#endpoint(await this.#body(request));
    const path = url.pathname.replace(/^\/open-apis/, "");
    if (path === "/auth/v3/tenant_access_token/internal") return this.#authorize(await this.#body(request));
    const token = request.headers.get("authorization");
    if (token === null) return no(99991661, "Missing access token for authorization.", 400);
    if (token !== `Bearer ${this.#token}`) {
      return no(99991663, "Invalid access token for authorization.", 400);
    }
    return await this.#call(`${request.method} ${path}`, url.searchParams, request);
  }

  async #body(request: Request): Promise<Json> {
    if (!/^application\/json/.test(request.headers.get("content-type") ?? "")) {
      this.faults.push("content type");
    }
    return await request.json().catch(() => ({}));
  }

  #endpoint({ AppID, AppSecret }: Json): Response {
    if (AppID !== APP_ID || AppSecret !== SECRET || this.revoked) return no(514, "app id or secret is wrong");
    const ticket = encodeURIComponent(this.createTicket());
    const URL = `${this.socketUrl}/ws?device_id=1&service_id=33&ticket=${ticket}`;
    const config = {
      ReconnectCount: -1,
      ReconnectInterval: 120,
      ReconnectNonce: 30,
      PingInterval: this.pingS,
    };
    return yes({ URL, ClientConfig: config });
  }

  #authorize({ app_id, app_secret }: Json): Response {
    if (app_id !== APP_ID) return no(10003, "invalid param");
    if (app_secret !== SECRET || this.revoked) return no(10014, "app secret invalid");
    this.#token ||= this.createId("t-");
    this.tokens++;
    return Response.json({ code: 0, msg: "ok", tenant_access_token: this.#token, expire: 7200 });
  }

  async #call(route: string, query: URLSearchParams, request: Request): Promise<Response> {
    const [, message = "", rest = ""] = /\/im\/v1\/messages\/(\w+)(\/?.*)$/.exec(route) ?? [];
    const verb = route.split(" ")[0];
    if (route === "GET /bot/v3/info") {
      return Response.json({
        code: 0,
        msg: "ok",
        bot: { activate_status: 2, app_name: "svc", open_id: BOT },
      });
    }
    if (route === "POST /im/v1/files") return this.#upload(await request.formData());
    if (route === "POST /im/v1/messages") {
      const { receive_id, ...body } = await this.#body(request);
      if (query.get("receive_id_type") !== "chat_id") return no(230001, "receive_id_type", 400);
      return this.#send({ chat: receive_id, thread: "", answers: "" }, body);
    }
    if (verb === "POST" && rest === "/reply") return this.#reply(message, await this.#body(request));
    if (verb === "POST" && rest === "/reactions") return this.#react(message, await this.#body(request));
    if (verb === "DELETE" && rest.startsWith("/reactions/")) return this.#unreact(rest.split("/")[2] ?? "");
    if (verb === "GET" && rest === "") return this.#message(message);
    if (verb === "PATCH" && rest === "") return this.#change(message, await this.#body(request));
    if (verb === "DELETE" && rest === "") return this.#recall(message);
    if (verb === "GET" && rest.startsWith("/resources/")) {
      return this.#resource(message, rest.split("/")[2] ?? "", query.get("type") ?? "");
    }
    this.faults.push(`call ${route}`);
    return no(404, "404 page not found", 404);
  }

  #message(id: string): Response {
    this.requested.push(id);
    const items = this.items.get(id);
    if (items === "hang") return new Response(new ReadableStream());
    if (items !== undefined) return yes({ items });
    const own = this.sent.find(({ message_id }) => message_id === id);
    if (own === undefined) return no(230002, "The bot can not be outside the group.", 400);
    const sender = { id: APP_ID, id_type: "app_id", sender_type: "app" };
    const body = { content: JSON.stringify({ text: own.text }) };
    return yes({ items: [{ message_id: id, msg_type: "text", sender, body }] });
  }

  #reply(id: string, { reply_in_thread = false, ...body }: Json): Response {
    const own = this.sent.find(({ message_id }) => message_id === id);
    const target = this.said.get(id) ?? own;
    if (target === undefined) return no(230001, "invalid message_id", 400);
    if (target.gone || target.deleted) return no(230011, "The message is recalled.", 400);
    const thread = target.thread || (reply_in_thread ? id : "");
    return this.#send({ chat: target.chat, thread, answers: id }, body);
  }

  #send(place: { chat: string; thread: string; answers: string }, body: Json): Response {
    const { msg_type, content, uuid, ...more } = body;
    if (Object.keys(more).length > 0) return no(230001, `unknown ${Object.keys(more)}`, 400);
    if (this.limited.has(place.chat)) return no(230020, "This operation triggers the frequency limit.", 400);
    if (uuid !== undefined && uuid.length > 50) return no(230001, "uuid is too long", 400);
    const mode = this.modes.shift();
    if (typeof mode === "object") return no(mode.code, "refused", mode.status, mode.reset);
    const earlier = this.sent.find(({ message_id }) => message_id === this.#keys.get(uuid));
    if (earlier !== undefined) {
      return mode === "lost"
        ? dropConnection()
        : yes({ message_id: earlier.message_id, chat_id: earlier.chat });
    }
    if (typeof content !== "string") return no(230001, "content is no string", 400);
    const said = this.#content(msg_type, JSON.parse(content));
    if (said instanceof Response) return said;
    const message_id = this.createId("om_s");
    this.sent.push({ ...place, ...said, message_id, uuid: uuid ?? "", deleted: false, edits: 0 });
    if (uuid !== undefined) this.#keys.set(uuid, message_id);
    if (mode === "lost") return dropConnection();
    return yes({ message_id, chat_id: place.chat, ...(place.thread === "" ? {} : { thread_id: "omt_1" }) });
  }

  #content(type: string, content: Json): Json {
    if (type === "file") {
      const file = this.#stored.get(content.file_key);
      if (file === undefined) return no(230055, "the type of the file is wrong", 400);
      this.uploads.push(file);
      return { text: `[file ${file.name}]`, buttons: [] };
    }
    if (type === "text") {
      if (/<at/.test(content.text)) this.faults.push("it mentions somebody");
      return { text: content.text, buttons: [], isText: true };
    }
    return type === "interactive" ? this.#card(content) : no(230001, `msg_type ${type}`, 400);
  }

  #card(card: Json): Json {
    const bytes = new TextEncoder().encode(JSON.stringify(JSON.stringify(card))).length;
    if (bytes > CARD_BYTES) return no(230025, "The length of the message content reaches its limit.", 400);
    const { schema, config, body, ...more } = card;
    const elements = body?.elements ?? [];
    const isWell = schema === "2.0" && Object.keys(more).length === 0 && config?.update_multi === true &&
      elements.length > 0 && elements.every(({ tag }: Json) => TAGS.includes(tag));
    if (!isWell) return no(200621, "parse card json err", 400);
    const text = elements.filter(({ tag }: Json) => tag === "markdown").map(({ content }: Json) => content)
      .join("\n");
    if (/<(at|person)/.test(text)) this.faults.push("it mentions somebody");
    if ((text.match(/^\|(?:\s*:?-+:?\s*\|)+$/gm) ?? []).length > 5) {
      return no(
        230099,
        "Failed to create card content, ext=ErrCode: 11310; ErrMsg: card table number over limit",
        400,
      );
    }
    const buttons = elements.filter(({ tag }: Json) => tag === "button");
    for (const { text: label, behaviors: [behaviour] } of buttons) {
      if (
        label.tag !== "plain_text" || behaviour.type !== "callback" || typeof behaviour.value !== "object"
      ) {
        return no(230099, "a button", 400);
      }
    }
    return { text: entities(text), buttons };
  }

  #change(id: string, body: Json): Response {
    const message = this.sent.find(({ message_id }) => message_id === id);
    if (message === undefined || message.isText) return no(230001, "no card", 400);
    if (message.deleted) return no(230011, "The message is recalled.", 400);
    if (this.unchangeable !== 0) return no(this.unchangeable, "The message cannot be changed.", 400);
    if (this.limited.has(message.chat)) {
      return no(230020, "This operation triggers the frequency limit.", 400);
    }
    if (Object.keys(body).join() !== "content") return no(230001, "unknown fields", 400);
    const said = this.#card(JSON.parse(body.content));
    if (said instanceof Response) return said;
    Object.assign(message, said, { edits: message.edits + 1 });
    return yes({});
  }

  #recall(id: string): Response {
    const message = this.sent.find(({ message_id }) => message_id === id);
    if (message === undefined) return no(230001, "invalid message_id", 400);
    if (message.deleted) return no(230110, "the message has been deleted", 400);
    message.deleted = true;
    return yes({});
  }

  #react(id: string, { reaction_type }: Json): Response {
    if (!this.said.has(id)) return no(231003, "The message is not found", 400);
    if (reaction_type?.emoji_type !== "Typing") return no(231001, "reaction type is invalid.", 400);
    const reaction_id = this.createId("r");
    this.reactions.push(`${id} Typing`);
    this.reactionsNow.set(reaction_id, id);
    return yes({ reaction_id });
  }

  #unreact(id: string): Response {
    return this.reactionsNow.delete(id) ? yes({}) : no(231011, "the reaction is not there", 400);
  }

  async #upload(form: FormData): Promise<Response> {
    const file = form.get("file");
    if (!(file instanceof File) || form.get("file_type") !== "stream" || !form.get("file_name")) {
      return no(234001, "Invalid request param.", 400);
    }
    if (file.size === 0) return no(234010, "File's size can't be 0.", 400);
    if (file.size > FILE_BYTES) return no(234006, "The file size exceed the max value.", 400);
    const file_key = this.createId("file_");
    this.#stored.set(file_key, { name: String(form.get("file_name")), text: await file.text() });
    return yes({ file_key });
  }

  #resource(message: string, key: string, type: string): Response {
    if (!this.said.has(message) && !this.items.has(message) || !["image", "file"].includes(type)) {
      return no(234001, "Invalid request param.", 400);
    }
    return this.files.has(key) ? this.download(key) : no(234003, "File not in msg.", 400);
  }

  #upgrade(request: Request, query: URLSearchParams): Response {
    if (!this.useTicket(query.get("ticket"))) {
      return new Response(null, { status: 403, headers: { "handshake-status": "403" } });
    }
    return this.accept(request, {
      take: (data, socket) => {
        if (typeof data === "string") this.faults.push("a frame of text");
        else this.#take(socket, new Uint8Array(data));
      },
    });
  }

  #take(socket: WebSocket, bytes: Uint8Array): void {
    const { method, headers, payload, service, logIdNew } = readFrame(bytes);
    if (service !== 33) this.faults.push(`service ${service}`);
    if (method === 0) {
      if (headers.type !== "ping") this.faults.push(`control ${headers.type}`);
      this.pings++;
      const config = JSON.stringify({ PingInterval: this.pingS });
      const pong = { service: 33, method: 0, headers: { type: "pong" }, payload: config };
      if (!this.isSilent) socket.send(frameBytes(pong));
      return;
    }
    if (logIdNew !== "kept") this.faults.push("another frame came back");
    const { code, data } = JSON.parse(payload);
    const event = this.waiting.get(headers.message_id ?? "");
    if (code !== 200 || event === undefined) return void this.refusals.push(code);
    this.waiting.delete(headers.message_id ?? "");
    if (event.json.header.event_type === "card.action.trigger") this.#shown(event.json.event, data);
  }

  /** Decodes the base64 answer to a press. */
  #shown({ context }: Json, data: string | undefined): void {
    if (data === undefined) return;
    const { toast, card } = JSON.parse(
      new TextDecoder().decode(Uint8Array.from(atob(data), (one) => one.charCodeAt(0))),
    );
    this.toasts.push(toast);
    if (card === undefined) return;
    if (card.type !== "raw") this.faults.push(`card ${card.type}`);
    const message = this.sent.find(({ message_id }) => message_id === context.open_message_id);
    const said = this.#card(card.data);
    if (said instanceof Response) this.faults.push("the card after a press");
    else Object.assign(message, { old: message.old ?? message.buttons, ...said });
  }
}

function entities(text: string): string {
  const names: Record<string, string> = { lt: "<", gt: ">", amp: "&" };
  return text.replace(
    /&(?:#(\d+)|(\w+));/g,
    (all, number, name) => number === undefined ? names[name] ?? all : String.fromCharCode(Number(number)),
  );
}

function yes(data: Json): Response {
  return Response.json({ code: 0, msg: "success", data });
}

function no(code: number, msg: string, status = 200, reset?: number): Response {
  const headers: Record<string, string> = reset === undefined
    ? {}
    : { "x-ogw-ratelimit-reset": String(reset) };
  return Response.json({ code, msg }, { status, headers });
}
