import { dropConnection, FakeServer, type Json } from "./server.ts";

const BOT_TOKEN = "xoxb-1";
const APP_TOKEN = "xapp-1";
const BOT = "UBOT";

/** A strict fake of Slack's Web API and Socket Mode. */
export class FakeSlack extends FakeServer {
  readonly appToken = APP_TOKEN;
  readonly botToken = BOT_TOKEN;
  readonly bot = BOT;
  /** Answers of the next uploads, before normal ones. */
  readonly uploadModes: ("lost" | number)[] = [];
  readonly reactions: string[] = [];
  /** Answers a login page instead of a file. */
  isUnscoped = false;
  #pending = new Map<string, { name: string; bytes: Uint8Array }>();

  /** History: `channel`, `ts`, `user`, `text`. */
  readonly history: Json[] = [];
  /** Files that their messages do not describe, by id. */
  readonly fileInfos = new Map<string, Json>();
  /** The starts of threads never arrive. */
  areThreadsSilent = false;
  /** Requested channels and threads. */
  readonly asked: string[] = [];
  /** Errors of the next requests. "": none. */
  readonly historyErrors: string[] = [];

  /** Sends an event of the Events API, and again over the next socket until the acknowledgement. */
  event(event: Json): void {
    this.push({
      type: "events_api",
      payload: { type: "event_callback", event_id: this.createId("Ev"), event },
    });
  }

  push(frame: Json): void {
    this.announce(this.createId("e"), frame);
  }

  protected override transmit(socket: WebSocket, envelope_id: string, frame: Json): void {
    socket.send(JSON.stringify({ envelope_id, accepts_response_payload: false, ...frame }));
  }

  /** Announces the end of the socket, or drops it. */
  disconnect(reason: "refresh_requested" | "link_disabled" | "drop"): void {
    for (const socket of this.sockets) {
      if (reason === "drop") socket.close();
      else socket.send(JSON.stringify({ type: "disconnect", reason }));
    }
  }

  protected async answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === "/link") return this.#upgrade(request, url.searchParams.get("ticket"));
    const [, folder = "", name = ""] = /^\/(api|upload|files)\/([\w.]+)$/.exec(url.pathname) ?? [];
    if (folder === "upload") return await this.#upload(name, request);
    const token = request.headers.get("authorization")?.replace("Bearer ", "");
    if (folder === "files") return this.#file(name, token);
    const form = new URLSearchParams(await request.text());
    if (!/^application\/x-www-form-urlencoded/.test(request.headers.get("content-type") ?? "")) {
      this.faults.push(`content type of ${name}`);
    }
    const wanted = name === "apps.connections.open" ? APP_TOKEN : BOT_TOKEN;
    if (this.revoked) return no("token_revoked");
    if (token !== wanted) {
      return no(token === APP_TOKEN || token === BOT_TOKEN ? "not_allowed_token_type" : "invalid_auth");
    }
    return this.#call(name, Object.fromEntries(form));
  }

  #call(method: string, fields: Record<string, string>): Response {
    switch (method) {
      case "auth.test":
        return yes({ user_id: BOT, user: "svc", team: "Team" });
      case "apps.connections.open":
        return yes({ url: `${this.socketUrl}/link?ticket=${encodeURIComponent(this.createTicket())}` });
      case "files.info": {
        const file = this.fileInfos.get(fields.file ?? "");
        return file === undefined ? no("file_not_found") : yes({ file });
      }
      case "conversations.history":
      case "conversations.replies":
        return this.#history(fields);
      case "chat.postMessage":
        return this.#post(fields);
      case "chat.update":
        return this.#change(fields, (message) => {
          const blocks = fields.blocks === undefined ? message.blocks : JSON.parse(fields.blocks);
          Object.assign(message, { text: fields.text, old: message.old ?? message.blocks, blocks });
        });
      case "chat.delete":
        return this.#change(fields, (message) => message.deleted = true);
      case "reactions.add":
        if (this.reactions.includes(fields.timestamp ?? "")) return no("already_reacted");
        this.reactions.push(fields.timestamp ?? "");
        return yes({});
      case "files.getUploadURLExternal": {
        if (this.uploadModes[0] === "lost") {
          this.uploadModes.shift();
          return dropConnection();
        }
        const id = this.createId("F");
        this.#pending.set(id, { name: fields.filename ?? "", bytes: new Uint8Array(Number(fields.length)) });
        return yes({ upload_url: `${this.url}/upload/${id}`, file_id: id });
      }
      case "files.completeUploadExternal":
        return this.#complete(fields);
    }
    this.faults.push(`method ${method}`);
    return no("unknown_method");
  }

  /** Reads a page, newest first. A channel does not contain its threads. */
  #history(
    { channel = "", ts = "", oldest = "", limit = "", cursor = "0" }: Record<string, string>,
  ): Response {
    if (ts !== "" && this.areThreadsSilent) return new Response(new ReadableStream());
    this.asked.push(`${channel} ${ts}`.trim());
    if (!/^\d+(\.\d+)?$/.test(oldest) || !(Number(limit) <= 999)) this.faults.push("history without bounds");
    const error = this.historyErrors.shift() ?? "";
    if (error === "ratelimited") return new Response("", { status: 429, headers: { "retry-after": "1" } });
    if (error !== "") return no(error);
    // Each page of a thread has its start.
    const start = this.history.find((one) => ts !== "" && one.channel === channel && one.ts === ts);
    const all = this.history.filter((one) =>
      one === start ||
      one.channel === channel && one.ts > oldest && (ts === "" ? !one.thread_ts : one.thread_ts === ts)
    ).sort((a, b) => a.ts < b.ts ? 1 : -1);
    const [from, to] = [Number(cursor), Number(cursor) + Math.min(Number(limit), 3)];
    const messages = all.slice(from, to).map(({ channel: _channel, ...one }) => ({
      type: "message",
      ...one,
    }));
    const has_more = to < all.length;
    return yes({
      messages,
      has_more,
      ...(has_more ? { response_metadata: { next_cursor: String(to) } } : {}),
    });
  }

  #post(fields: Record<string, string>): Response {
    const { channel = "", text = "", thread_ts = "" } = fields;
    if (this.limited.has(channel)) return new Response("", { status: 429, headers: { "retry-after": "1" } });
    if (text === "") return no("no_text");
    if (/<!|<@/.test(text)) this.faults.push("it mentions somebody");
    const mode = this.modes.shift();
    if (typeof mode === "number") return new Response("", { status: mode });
    const blocks = JSON.parse(fields.blocks ?? "[]");
    for (const block of blocks) {
      if (block.type === "section" && block.text.text.length > 3_000) return no("invalid_blocks");
      if (block.type === "actions" && block.elements.length > 25) return no("invalid_blocks");
    }
    const ts = `1700000000.${this.createId().padStart(6, "0")}`;
    this.sent.push({ channel, text, thread_ts, ts, blocks, deleted: false });
    if (mode === "lost") return dropConnection();
    return yes({ channel, ts });
  }

  #change({ channel, ts }: Record<string, string>, change: (message: Json) => void): Response {
    const message = this.sent.find((one) => one.channel === channel && one.ts === ts && !one.deleted);
    if (message === undefined) return no("message_not_found");
    change(message);
    return yes({ ts });
  }

  async #upload(id: string, request: Request): Promise<Response> {
    const file = this.#pending.get(id);
    const bytes = new Uint8Array(await request.arrayBuffer());
    const mode = this.uploadModes.shift();
    if (typeof mode === "number") return new Response("no", { status: mode });
    if (file === undefined || bytes.length !== file.bytes.length) return new Response("no", { status: 400 });
    file.bytes = bytes;
    return new Response("OK");
  }

  #complete({ files = "[]", channel_id = "", thread_ts = "" }: Record<string, string>): Response {
    const [{ id }] = JSON.parse(files);
    const file = this.#pending.get(id);
    if (file === undefined) return no("file_not_found");
    this.uploads.push({ name: file.name, text: new TextDecoder().decode(file.bytes), chat: channel_id });
    const message = { channel: channel_id, thread_ts, text: `[file ${file.name}]`, ts: id, blocks: [] };
    this.sent.push({ ...message, deleted: false });
    return yes({ files: [{ id }] });
  }

  #file(id: string, token: string | undefined): Response {
    if (token !== BOT_TOKEN || this.isUnscoped) {
      return new Response("<html>", { headers: { "content-type": "text/html; charset=utf-8" } });
    }
    return this.download(id);
  }

  #upgrade(request: Request, ticket: string | null): Response {
    if (!this.useTicket(ticket)) return new Response("used", { status: 403 });
    return this.accept(request, {
      greet: (socket) => socket.send(JSON.stringify({ type: "hello", num_connections: this.sockets.size })),
      take: (data) => this.waiting.delete(JSON.parse(data).envelope_id),
    });
  }
}

function yes(result: Json): Response {
  return Response.json({ ok: true, ...result });
}

function no(error: string): Response {
  return Response.json({ ok: false, error });
}
