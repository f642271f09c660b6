import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import { Connection } from "../connection.ts";
import type { Delivery, Incoming, Platform, Receive } from "../platform.ts";
import { deliveryError, TelegramClient, TelegramError } from "./client.ts";
import { cutText, toHtml } from "./format.ts";

const log = logger("telegram");
const POLL_S = 30;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
// A key that does not count, or a second poller: somebody has to do something first.
const REFUSED_PAUSE_MS = 60_000;

interface Settings {
  token: string;
  base_url: string;
}

interface User {
  id: number;
  is_bot: boolean;
  first_name?: string;
  username?: string;
}

interface Message {
  message_id: number;
  chat: { id: number; type: string };
  message_thread_id?: number;
  is_topic_message?: boolean;
  from?: User;
  text?: string;
  caption?: string;
  reply_to_message?: { from?: User };
}

interface Update {
  update_id: number;
  message?: Message;
}

/** A bot of Telegram: long polling, so no public address is needed (contract 10, decision 0093). */
export function createTelegram(name: string, settings: Settings, clock: Clock): Platform {
  const client = new TelegramClient(settings.token, settings.base_url);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  let polling = Promise.resolve();
  return {
    name,
    kind: "telegram",
    start(receive) {
      if (settings.token === "") return connection.become("refused", "it has no token");
      polling = poll({ client, connection, clock, receive, signal: stopped.signal });
    },
    async stop() {
      stopped.abort();
      await polling;
    },
    cut: (content, media) =>
      media === null
        ? cutText(content)
        : cutText(`${content}\n\n[the file ${media.name} stays in the service]`),
    deliver: (delivery) => deliver(client, delivery),
    async test() {
      const me = await client.call<User>("getMe", {});
      return `the bot is @${me.username ?? me.id}`;
    },
    health: () => connection.health,
  };
}

interface Poll {
  client: TelegramClient;
  connection: Connection;
  clock: Clock;
  receive: Receive;
  signal: AbortSignal;
}

async function poll(parts: Poll): Promise<void> {
  const { connection, clock, signal } = parts;
  let failures = 0;
  while (!signal.aborted) {
    try {
      await session(parts, () => failures = 0);
    } catch (error) {
      if (signal.aborted) return;
      const { code, retryAfterMs } = error instanceof TelegramError ? error : { code: 0, retryAfterMs: null };
      const words = error instanceof Error ? error.message : String(error);
      const refused = [401, 404, 409].includes(code);
      connection.become(refused ? "refused" : code === 429 ? "limited" : "down", words);
      const pause = refused ? REFUSED_PAUSE_MS : retryAfterMs ?? backoffMs(RETRY, ++failures);
      await sleep(clock, pause, signal);
    }
  }
}

/** Polls until something fails. An update is confirmed by the next poll, after what it says was stored. */
async function session({ client, connection, receive, signal }: Poll, wellAgain: () => void): Promise<void> {
  const me = await client.call<User>("getMe", {}, { signal });
  connection.become("connected");
  let offset: number | undefined;
  while (!signal.aborted) {
    const updates = await client.call<Update[]>("getUpdates", {
      ...(offset === undefined ? {} : { offset }),
      timeout: POLL_S,
      allowed_updates: ["message"],
    }, { holdMs: POLL_S * 1000, signal });
    wellAgain();
    for (const update of updates) {
      connection.seen();
      const incoming = update.message === undefined ? null : incomingOf(update.message, me);
      if (incoming !== null) await store(receive, incoming);
      offset = update.update_id + 1;
    }
  }
}

// What can never be stored is left out: it would come again for ever, with all that is behind it.
async function store(receive: Receive, incoming: Incoming): Promise<void> {
  try {
    await receive(incoming);
  } catch (error) {
    const isInput = error instanceof Error && "code" in error && error.code === "invalid_request";
    if (!isInput) throw error;
    log.warning("A message of Telegram cannot be stored: {error}", { error });
  }
}

/** Null for what bots say, ourselves among them, and for what has no text. */
function incomingOf(message: Message, me: User): Incoming | null {
  const { from, chat } = message;
  const said = message.text ?? message.caption ?? "";
  if (from === undefined || from.is_bot || said.trim() === "") return null;
  const mention = new RegExp(`@${me.username ?? "\\0"}\\b`, "gi");
  const isReply = message.reply_to_message?.from?.id === me.id;
  return {
    chat: String(chat.id),
    thread: message.is_topic_message && message.message_thread_id !== undefined
      ? String(message.message_thread_id)
      : "",
    id: String(message.message_id),
    sender: { id: String(from.id), name: from.first_name ?? from.username ?? "" },
    text: said.replace(mention, "").trim() || said,
    files: [],
    isDirect: chat.type === "private",
    isMentioned: isReply || mention.test(said),
    isData: false,
  };
}

async function deliver(client: TelegramClient, { chat, thread, answers, part }: Delivery): Promise<string> {
  const body = {
    chat_id: chat,
    ...(thread === "" ? {} : { message_thread_id: Number(thread) }),
    ...(answers === ""
      ? {}
      : { reply_parameters: { message_id: Number(answers), allow_sending_without_reply: true } }),
    link_preview_options: { is_disabled: true },
  };
  const send = (more: object) => client.call<{ message_id: number }>("sendMessage", { ...body, ...more });
  try {
    const sent = await send({ text: toHtml(part.text), parse_mode: "HTML" }).catch((error) => {
      // Marks that it cannot read are sent as they are.
      if (error instanceof TelegramError && /can't parse entities/i.test(error.message)) {
        return send({ text: part.text });
      }
      throw error;
    });
    return String(sent.message_id);
  } catch (error) {
    throw deliveryError(error);
  }
}
