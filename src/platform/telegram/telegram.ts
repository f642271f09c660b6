import type { Backoff } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import { turn } from "../../base/yield_to_loop.ts";
import { Connection } from "../connection.ts";
import { partsOf } from "../message_parts.ts";
import { keepConnected, type Trouble } from "../keep_connected.ts";
import type { Platform, Receive, Received } from "../platform.ts";
import { readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { deliveryError, TelegramClient, TelegramError } from "./client.ts";
import { type Click, incomingOf, type Update, type User } from "./message.ts";
import { deliver, showProgress } from "./send.ts";

const log = logger("telegram");
const POLL_S = 30;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
// A key that does not count, or a second poller: somebody has to do something first.
const REFUSED_PAUSE_MS = 60_000;

// Telegram takes 4,096 characters after its marks are taken off; some room is left for those.
const LIMITS = { characters: 3_600, fileBytes: 50_000_000 };

interface Settings {
  token: string;
  base_url: string;
}

/** A bot of Telegram: long polling, so no public address is needed (contract 10, decision 0023). */
export function createTelegram(name: string, settings: Settings, clock: Clock): Platform {
  const client = new TelegramClient(settings.token, settings.base_url);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  const signal = stopped.signal;
  let polling = Promise.resolve();
  return {
    name,
    kind: "telegram",
    start(receive) {
      if (settings.token === "") return connection.become("refused", "it has no token");
      const session = (wellAgain: () => void) => poll({ client, connection, receive, signal, wellAgain });
      polling = keepConnected({ connection, clock, signal, retry: RETRY, session, troubleOf });
    },
    async stop() {
      stopped.abort();
      await polling;
    },
    takesFiles: true,
    cut: (content, media) => partsOf(content, media, LIMITS),
    deliver: (delivery) => deliver(client, delivery),
    progress: (progress) => showProgress(client, progress),
    async fetch(ref, signal) {
      return await client.download(ref, signal).catch((error) => {
        throw deliveryError(error);
      });
    },
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
  receive: Receive;
  signal: AbortSignal;
  wellAgain: () => void;
}

function troubleOf(error: unknown): Trouble {
  const { code, retryAfterMs } = error instanceof TelegramError ? error : { code: 0, retryAfterMs: null };
  if ([401, 404, 409].includes(code)) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  return { state: code === 429 ? "limited" : "down", pauseMs: retryAfterMs };
}

/** Polls until something fails. An update is confirmed by the next poll, after what it says was stored. */
async function poll({ client, connection, receive, signal, wellAgain }: Poll): Promise<void> {
  const me = await client.call<User>("getMe", {}, { signal });
  connection.become("connected");
  let offset: number | undefined;
  while (!signal.aborted) {
    const updates = await client.call<Update[]>("getUpdates", {
      ...(offset === undefined ? {} : { offset }),
      timeout: POLL_S,
      allowed_updates: ["message", "callback_query"],
    }, { holdMs: POLL_S * 1000, signal });
    wellAgain();
    for (const update of updates) {
      connection.seen();
      const incoming = readOrLeave("Telegram", () => incomingOf(update, me));
      const received = incoming === null ? null : await storeOrLeave("Telegram", receive, incoming);
      if (update.callback_query !== undefined) void confirm(client, update.callback_query, received?.outcome);
      offset = update.update_id + 1;
      if (update !== updates.at(-1)) await turn();
    }
  }
}

// The button stops turning, and the question loses its buttons: shown to people, so nothing depends on it.
async function confirm(
  client: TelegramClient,
  click: Click,
  outcome: Received["outcome"] | undefined,
): Promise<void> {
  const isAnswered = outcome === "queued" || outcome === "repeated";
  const words = isAnswered
    ? ""
    : outcome === "late"
    ? "This question is not open any more."
    : "You may not answer here.";
  try {
    const { id, message, data = "" } = click;
    await client.call("answerCallbackQuery", {
      callback_query_id: id,
      ...(words === "" ? {} : { text: words }),
    });
    if (message === undefined || !isAnswered && outcome !== "late") return;
    const chosen = message.reply_markup?.inline_keyboard.flat().find((one) => one.callback_data === data);
    await client.call("editMessageText", {
      chat_id: message.chat.id,
      message_id: message.message_id,
      text: `${message.text ?? ""}\n\n${isAnswered ? `> ${chosen?.text ?? ""}` : "(not open any more)"}`,
    });
  } catch (error) {
    log.info("A button of Telegram stays as it is: {error}", { error });
  }
}
