import { createCipheriv, createHash, randomBytes } from "node:crypto";
import { FakeServer, type Json } from "./server.ts";

const BOT_ID = "aib-1";
const SECRET = "wecom-secret-1";
const CODE = {
  credentials: 853_000,
  request: 40_058,
  tooMany: 45_009,
  chat: 93_006,
  callback: 846_605,
  stream: 846_608,
  subscribed: 846_609,
};
const CONTENT_BYTES = 20_480;
const PIECE_BYTES = 512 * 1024;
const UPDATE_MS = 5_000;

interface Upload {
  name: string;
  md5: string;
  size: number;
  pieces: Uint8Array[];
}

/** A strict fake of WeCom's long connection for smart bots. */
export class FakeWeCom extends FakeServer<"taken" | "lost" | "slow" | number> {
  readonly botId = BOT_ID;
  readonly secret = SECRET;
  isDeaf = false;
  pings = 0;
  subscriptions = 0;
  /** Active socket. A newer one replaces it. */
  socket: WebSocket | null = null;
  /** The addresses of files have expired. */
  isExpired = false;
  readonly #callbacks = new Map<string, { task: string; at: number }>();
  readonly #streams = new Map<string, { callback: string; message: Json }>();
  /** Sends names as plain UTF-8, as some servers do. */
  hasPlainNames = false;
  readonly #files = new Map<string, { name: string; bytes: Uint8Array<ArrayBuffer> }>();
  readonly #uploads = new Map<string, Upload>();
  readonly #media = new Map<string, { name: string; bytes: Uint8Array }>();

  /** Sends a message or event. A bot without a socket never gets it. */
  push(cmd: "aibot_msg_callback" | "aibot_event_callback", body: Json): void {
    const req_id = this.createId("cb");
    const task = body.event?.template_card_event?.task_id ?? "";
    this.#callbacks.set(req_id, { task, at: performance.now() });
    this.socket?.send(JSON.stringify({ cmd, headers: { req_id }, body: { aibotid: BOT_ID, ...body } }));
  }

  /** Builds a file of a message: encrypted, with an address that is valid for five minutes. */
  file(name: string, bytes: Uint8Array): { url: string; aeskey: string } {
    const key = randomBytes(32);
    const padding = 32 - bytes.length % 32;
    const cipher = createCipheriv("aes-256-cbc", key, key.subarray(0, 16)).setAutoPadding(false);
    const whole = Buffer.concat([bytes, Buffer.alloc(padding, padding)]);
    const id = this.createId("f");
    const closed = Buffer.concat([cipher.update(whole), cipher.final()]);
    this.#files.set(id, { name, bytes: new Uint8Array(closed) });
    return { url: `${this.url}/files/${id}`, aeskey: key.toString("base64") };
  }

  override drop(): void {
    const dropped = this.socket;
    this.socket = null;
    dropped?.close();
  }

  /** Ends the subscription and leaves the socket open. */
  forget(): void {
    this.socket = null;
  }

  protected answer(request: Request): Response {
    const [, id = ""] = /^\/files\/(\w+)$/.exec(new URL(request.url).pathname) ?? [];
    const file = this.#files.get(id);
    if (file !== undefined && !this.isExpired) {
      const name = this.hasPlainNames
        ? `filename="${Buffer.from(file.name).toString("latin1")}"`
        : `filename*=UTF-8''${encodeURIComponent(file.name)}`;
      return new Response(file.bytes, { headers: { "content-disposition": `attachment; ${name}` } });
    }
    if (request.headers.get("upgrade") !== "websocket") return new Response("no", { status: 403 });
    return this.accept(request, {
      take: (data, socket) => this.#take(socket, JSON.parse(data)),
      gone: (socket) => {
        if (this.socket === socket) this.socket = null;
      },
    });
  }

  #take(socket: WebSocket, { cmd, headers, body }: Json): void {
    const reply = (errcode: number, errmsg: string, result?: Json) => {
      if (socket.readyState !== WebSocket.OPEN) return;
      socket.send(JSON.stringify({ headers, errcode, errmsg, ...(result ? { body: result } : {}) }));
    };
    if (typeof headers?.req_id !== "string") this.faults.push(`${cmd} without req_id`);
    if (cmd === "aibot_subscribe") return this.#subscribe(socket, body, reply);
    if (socket !== this.socket) return reply(CODE.subscribed, "aibot websocket not subscribed");
    if (cmd === "ping") {
      this.pings++;
      return this.isDeaf ? undefined : reply(0, "ok");
    }
    const mode = cmd === "aibot_send_msg" ? this.modes.shift() : undefined;
    if (typeof mode === "number") return reply(mode, "switched");
    const answer = this.#carryOut(cmd, headers.req_id, body);
    if (typeof answer === "number") {
      if (![CODE.tooMany, CODE.callback, CODE.stream].includes(answer)) this.faults.push(`${cmd}: ${answer}`);
      return reply(answer, "not taken");
    }
    if (mode === "lost") return this.drop();
    if (mode === "slow") return void setTimeout(() => reply(0, "ok", answer), 1_500);
    reply(0, "ok", answer);
  }

  #subscribe(socket: WebSocket, body: Json, reply: (code: number, words: string) => void): void {
    this.subscriptions++;
    if (this.revoked || body?.bot_id !== BOT_ID || body?.secret !== SECRET) {
      return reply(CODE.credentials, "invalid bot_id or secret");
    }
    const before = this.socket;
    if (before !== null) {
      this.push("aibot_event_callback", {
        msgid: this.createId("m"),
        msgtype: "event",
        from: { userid: "" },
        event: { eventtype: "disconnected_event" },
      });
      before.close();
    }
    this.socket = socket;
    reply(0, "ok");
  }

  #carryOut(cmd: string, id: string, body: Json): number | Json {
    switch (cmd) {
      case "aibot_send_msg":
        return this.#send(id, body);
      case "aibot_respond_msg":
        return this.#stream(id, body);
      case "aibot_respond_update_msg":
        return this.#update(id, body);
      case "aibot_upload_media_init": {
        const { type, filename, total_size, total_chunks, md5 } = body;
        const pieces = Math.ceil(total_size / PIECE_BYTES);
        if (type !== "file" || !filename || total_chunks !== pieces || pieces > 100) return CODE.request;
        const upload_id = this.createId("u");
        this.#uploads.set(upload_id, { name: filename, md5, size: total_size, pieces: [] });
        return { upload_id };
      }
      case "aibot_upload_media_chunk": {
        const piece = Buffer.from(body.base64_data, "base64");
        const upload = this.#uploads.get(body.upload_id);
        if (upload === undefined || piece.length > PIECE_BYTES) return CODE.request;
        upload.pieces[body.chunk_index] = piece;
        return {};
      }
      case "aibot_upload_media_finish":
        return this.#finish(body.upload_id);
    }
    return CODE.request;
  }

  #finish(id: string): number | Json {
    const upload = this.#uploads.get(id);
    const bytes = Buffer.concat(upload?.pieces ?? []);
    const isWhole = bytes.length === upload?.size &&
      createHash("md5").update(bytes).digest("hex") === upload.md5;
    if (upload === undefined || !isWhole) return CODE.request;
    const media_id = this.createId("media");
    this.#media.set(media_id, { name: upload.name, bytes });
    return { type: "file", media_id, created_at: "1700000000" };
  }

  #send(id: string, body: Json): number | Json {
    const { chatid, msgtype } = body;
    if (typeof chatid !== "string" || chatid === "") return CODE.chat;
    if (this.limited.has(chatid)) return CODE.tooMany;
    const message = { id, chatid, text: "", buttons: [] as Json[], old: [] as Json[], deleted: false };
    if (msgtype === "markdown") {
      if (!isContent(body.markdown?.content)) return CODE.request;
      if (/<@/.test(body.markdown.content)) this.faults.push("it mentions somebody");
      message.text = body.markdown.content;
    } else if (msgtype === "file") {
      const media = this.#media.get(body.file?.media_id);
      if (media === undefined) return CODE.request;
      this.uploads.push({ name: media.name, text: new TextDecoder().decode(media.bytes), chat: chatid });
      message.text = `[file ${media.name}]`;
    } else if (msgtype === "template_card") {
      const card = body.template_card;
      const isGood = isCard(card) && card.card_type === "button_interaction" &&
        !this.sent.some((one) => one.id === card.task_id);
      if (!isGood) return CODE.request;
      Object.assign(message, { id: card.task_id, text: textOf(card), buttons: card.button_list });
    } else return CODE.request;
    this.sent.push(message);
    return {};
  }

  #stream(callback: string, { msgtype, stream }: Json): number | Json {
    if (!this.#callbacks.has(callback)) return CODE.callback;
    if (msgtype !== "stream" || typeof stream?.id !== "string" || !isContent(stream.content)) {
      return CODE.request;
    }
    let shown = this.#streams.get(stream.id);
    if (shown === undefined) {
      const message = { id: stream.id, chatid: "", text: "", buttons: [], old: [], deleted: false };
      shown = { callback, message };
      this.#streams.set(stream.id, shown);
      this.sent.push(message);
    }
    if (shown.callback !== callback || shown.message.deleted) return CODE.stream;
    shown.message.text = stream.content;
    // WeCom can't delete the message, so its last text is DONE.
    shown.message.deleted = stream.finish === true && stream.content === "✓";
    return {};
  }

  #update(callback: string, { response_type, template_card: card }: Json): number | Json {
    const asked = this.#callbacks.get(callback);
    const isInTime = asked !== undefined && performance.now() - asked.at < UPDATE_MS;
    if (!isInTime) return CODE.callback;
    const isGood = response_type === "update_template_card" && isCard(card) && card.task_id === asked.task;
    const message = this.sent.find((one) => one.id === card?.task_id);
    if (!isGood || message === undefined) return CODE.request;
    message.old = [...message.old, ...message.buttons];
    message.buttons = card.button_list ?? [];
    message.text = `${textOf(card)}\n> ${card.quote_area?.quote_text ?? ""}`;
    return {};
  }
}

function isContent(content: unknown): boolean {
  return typeof content === "string" && content !== "" &&
    new TextEncoder().encode(content).length <= CONTENT_BYTES;
}

function isCard(card: Json): boolean {
  if (!/^[\w@-]{1,128}$/.test(card?.task_id ?? "") || !card.main_title?.title) return false;
  if (card.card_type === "text_notice") return card.card_action !== undefined;
  const keys = card.button_list?.map(({ key }: Json) => key) ?? [];
  return keys.length >= 1 && keys.length <= 6 && new Set(keys).size === keys.length &&
    card.button_list.every(({ text, key }: Json) => text !== "" && key.length <= 1024);
}

function textOf({ main_title, sub_title_text }: Json): string {
  return sub_title_text ?? main_title.title;
}
