import { dropConnection, FakeServer, type Json } from "./server.ts";

const TOKEN = "123:abc";

/** A strict fake of the Bot API. */
export class FakeTelegram extends FakeServer<"lost" | { code: number; retryAfter?: number }> {
  readonly token = TOKEN;
  /** Receives each message of the bot. */
  onSent: () => void = () => {};
  /** Runs at each poll, when the service has stored all earlier updates. */
  onPoll: () => void = () => {};
  hasRival = false;
  /** Accepts nothing and never answers. */
  hangs = false;
  retryAfter = 60;
  polls = 0;
  /** Typing signs, by chat. */
  readonly typing: string[] = [];
  /** Edits and deletions. */
  readonly edits: Json[] = [];
  readonly deleted: number[] = [];
  readonly confirmed: Json[] = [];
  /** New ids of groups that became supergroups, by their old ids. */
  readonly upgraded = new Map<string, number>();
  #updates: Json[] = [];
  #next = 1;
  #wake: (() => void)[] = [];
  readonly #over = Promise.withResolvers<void>();

  /** Sends a message of a person. Returns its id. */
  say(
    text: string,
    { chat = 7, type = "private", from = 7, id = this.#next, more = {}, kind = "message", bot = false } = {},
  ): number {
    const sender = { id: from, is_bot: bot, first_name: `User ${from}` };
    this.push({ [kind]: { message_id: id, date: 1, chat: { id: chat, type }, from: sender, text, ...more } });
    return id;
  }

  /** Number of updates that the bot has not confirmed. */
  get unconfirmed(): number {
    return this.#updates.length;
  }

  push(update: Json): void {
    this.#updates.push({ update_id: this.#next++, ...update });
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** Presses a button of the bot. */
  press(message: Json, label: string, { from = 7, chat = 7, type = "private", more = {} } = {}): void {
    const markup = message.reply_markup ?? message.buttons;
    const button = markup.inline_keyboard.flat().find((one: Json) => one.text === label);
    const shown = { message_id: message.message_id, chat: { id: chat, type }, text: message.text, ...more };
    const sender = { id: from, is_bot: false, first_name: `User ${from}` };
    this.push({
      callback_query: {
        id: `c${this.#next}`,
        from: sender,
        data: button.callback_data,
        message: { ...shown, reply_markup: markup },
      },
    });
  }

  protected async answer(request: Request): Promise<Response> {
    const [, fileToken, file] = /^\/file\/bot([^/]+)\/files\/(\w+)$/.exec(new URL(request.url).pathname) ??
      [];
    if (file !== undefined) return fileToken === TOKEN ? this.download(file) : refuse(401, "Unauthorized");
    const [, token = "", method = ""] = /^\/bot([^/]+)\/(\w+)$/.exec(new URL(request.url).pathname) ?? [];
    if (token !== TOKEN || this.revoked) return refuse(401, "Unauthorized");
    if (method === "sendDocument") return this.#document(await request.formData());
    if (request.headers.get("content-type") !== "application/json") this.faults.push("content type");
    const body = await request.json();
    if (method === "getMe") return ok({ id: 99, is_bot: true, first_name: "svc", username: "svc_bot" });
    if (method === "getUpdates" && this.hasRival) {
      return refuse(409, "Conflict: terminated by other getUpdates request");
    }
    const supergroup = this.upgraded.get(String(body.chat_id));
    if (supergroup !== undefined) return refuseUpgraded(supergroup);
    if (method === "getUpdates") return ok(await this.#poll(body, request.signal));
    if (method === "sendMessage") return this.#send(body);
    if (method === "sendChatAction") return this.#sign(body);
    if (method === "editMessageText") return this.#edit(body);
    if (method === "deleteMessage") return this.#delete(body);
    if (method === "getFile") return this.#file(body);
    if (method === "answerCallbackQuery") {
      this.confirmed.push(body);
      return ok(true);
    }
    this.faults.push(`method ${method}`);
    return refuse(404, "Not Found");
  }

  async #poll({ offset = 0, allowed_updates }: Json, signal: AbortSignal): Promise<Json[]> {
    this.polls++;
    this.onPoll();
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

  async #send(body: Json): Promise<Response> {
    if (this.hangs) {
      await this.#over.promise;
      return refuse(500, "It is over");
    }
    const { chat_id, text, parse_mode, reply_parameters } = body;
    if (reply_parameters !== undefined && reply_parameters.allow_sending_without_reply !== true) {
      this.faults.push("a reply fails when the message is gone");
    }
    if (this.limited.has(String(chat_id))) return refuse(429, "Too Many Requests", this.retryAfter);
    if (typeof text !== "string" || text === "") return refuse(400, "Bad Request: message text is empty");
    if (parse_mode === "HTML" && !isHtml(text)) {
      return refuse(400, "Bad Request: can't parse entities: unclosed tag");
    }
    if (text.replace(/<[^>]+>/g, "").length > 4096) return refuse(400, "Bad Request: message is too long");
    const mode = this.modes.shift();
    if (typeof mode === "object") return refuse(mode.code, "Refused", mode.retryAfter);
    const sent = { ...body, message_id: 1001 + this.sent.length };
    this.sent.push(sent);
    this.onSent();
    if (mode === "lost") return dropConnection();
    for (const { text: label, callback_data } of (body.reply_markup?.inline_keyboard ?? []).flat()) {
      const isButton = label !== "" && new TextEncoder().encode(callback_data).length <= 64;
      if (!isButton) this.faults.push(`button ${label}`);
    }
    return ok({ message_id: sent.message_id, chat: { id: chat_id }, text });
  }

  #sign({ chat_id, action }: Json): Response {
    if (action !== "typing") this.faults.push(`action ${action}`);
    this.typing.push(String(chat_id));
    return ok(true);
  }

  #edit(body: Json): Response {
    const message = this.sent.find(({ message_id }) => message_id === body.message_id);
    if (message === undefined || this.deleted.includes(body.message_id)) {
      return refuse(400, "Bad Request: message to edit not found");
    }
    if (this.limited.has(String(body.chat_id))) return refuse(429, "Too Many Requests", this.retryAfter);
    if (message.text === body.text) return refuse(400, "Bad Request: message is not modified");
    const buttons = message.reply_markup ?? message.buttons;
    Object.assign(message, { text: body.text, reply_markup: body.reply_markup, buttons });
    this.edits.push(body);
    return ok({ message_id: body.message_id });
  }

  #delete({ message_id }: Json): Response {
    const isThere = this.sent.some((one) => one.message_id === message_id) &&
      !this.deleted.includes(message_id);
    if (!isThere) return refuse(400, "Bad Request: message to delete not found");
    this.deleted.push(message_id);
    return ok(true);
  }

  #file({ file_id }: Json): Response {
    const file = this.files.get(file_id);
    if (file === undefined) return refuse(400, "Bad Request: invalid file_id");
    if (typeof file === "object" && file.length > 20_000_000) {
      return refuse(400, "Bad Request: file is too big");
    }
    return ok({ file_id, file_path: `files/${file_id}` });
  }

  async #document(form: FormData): Promise<Response> {
    const file = form.get("document");
    if (!(file instanceof File)) return refuse(400, "Bad Request: there is no document in the request");
    const mode = this.modes.shift();
    if (typeof mode === "object") return refuse(mode.code, "Refused", mode.retryAfter);
    const chat = String(form.get("chat_id"));
    const supergroup = this.upgraded.get(chat);
    if (supergroup !== undefined) return refuseUpgraded(supergroup);
    this.uploads.push({ name: file.name, text: await file.text(), chat });
    const sent = { chat_id: chat, document: file.name, message_id: 1001 + this.sent.length };
    this.sent.push(sent);
    return ok({ message_id: sent.message_id, chat: { id: chat } });
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#over.resolve();
    for (const wake of this.#wake.splice(0)) wake();
    await super[Symbol.asyncDispose]();
  }
}

function ok(result: Json): Response {
  return Response.json({ ok: true, result });
}

function refuse(code: number, description: string, retryAfter?: number): Response {
  const parameters = retryAfter === undefined ? {} : { parameters: { retry_after: retryAfter } };
  return Response.json({ ok: false, error_code: code, description, ...parameters }, { status: code });
}

function refuseUpgraded(supergroup: number): Response {
  const description = "Bad Request: group chat was upgraded to a supergroup chat";
  const parameters = { migrate_to_chat_id: supergroup };
  return Response.json({ ok: false, error_code: 400, description, parameters }, { status: 400 });
}

/** Checks for unknown and unclosed tags, and for marks of tags in other text. */
function isHtml(text: string): boolean {
  const open: string[] = [];
  for (const [, close, tag = ""] of text.matchAll(/<(\/?)(\w*)[^>]*>?/g)) {
    if (!["b", "i", "s", "code", "pre", "a"].includes(tag)) return false;
    if (close === "") open.push(tag);
    else if (open.pop() !== tag) return false;
  }
  return open.length === 0 && !/&(?!amp;|lt;|gt;|quot;)/.test(text);
}
