import type { Backoff } from "../../base/backoff.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import type { Outcome, Platform } from "../platform.ts";
import {
  CLOSED_QUESTION,
  formatChoice,
  isAnswered,
  MAY_NOT_ANSWER,
  parseOrDrop,
  showOutcome,
  storeOrDrop,
} from "../receive_guard.ts";
import { TelegramClient } from "./client.ts";
import { type ButtonPress, parseUpdate, type Update, type User } from "./message.ts";
import { deliver, showProgress } from "./send.ts";

const POLL_S = 30;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
// Short, since another program with the same token can end at any time.
const REFUSED_PAUSE_MS = 60_000;

/** Creates a Telegram bot. The bot polls, so it needs no public address. */
export function createTelegram(base: PlatformBase, settings: Record<"token" | "base_url", string>): Platform {
  const { token, base_url } = settings;
  const client = new TelegramClient(token, base_url);
  return createConnectedPlatform({
    ...{ base, retry: RETRY, refusedPauseMs: REFUSED_PAUSE_MS, required: { token } },
    createSession: (deps) => (resetBackoff) => poll(client, deps, resetBackoff),
    deliver: (delivery) => deliver(client, delivery),
    progress: (progress) => showProgress(client, progress),
    fetch: (ref, signal) => client.download(ref, signal),
    async test() {
      const me = await client.call<User>("getMe", {});
      return `the bot is @${me.username ?? me.id}`;
    },
  });
}

/** Polls until a request fails. The next poll confirms an update, after the service stored its message. */
async function poll(
  client: TelegramClient,
  { connection, receive, signal }: SessionDeps,
  resetBackoff: () => void,
): Promise<void> {
  const me = await client.call<User>("getMe", {}, { signal });
  connection.setState("connected");
  let offset: number | undefined;
  while (!signal.aborted) {
    const updates = await client.call<Update[]>("getUpdates", {
      ...(offset === undefined ? {} : { offset }),
      timeout: POLL_S,
      allowed_updates: ["message", "callback_query"],
    }, { holdMs: POLL_S * 1000, signal });
    resetBackoff();
    for (const update of updates) {
      connection.recordEvent();
      const incoming = parseOrDrop("Telegram", () => parseUpdate(update, me));
      const received = incoming === null ? null : await storeOrDrop("Telegram", receive, incoming);
      const press = update.callback_query;
      if (press !== undefined) showOutcome("Telegram", () => confirm(client, press, received?.outcome));
      offset = update.update_id + 1;
      if (update !== updates.at(-1)) await yieldToLoop();
    }
  }
}

/** Ends the button's spinner and replaces the buttons. */
async function confirm(
  client: TelegramClient,
  { id, message, data = "" }: ButtonPress,
  outcome: Outcome,
): Promise<void> {
  const refusal = outcome === "late" ? CLOSED_QUESTION : MAY_NOT_ANSWER;
  await client.call("answerCallbackQuery", {
    callback_query_id: id,
    ...(isAnswered(outcome) ? {} : { text: refusal }),
  });
  const chosen = message?.reply_markup?.inline_keyboard.flat().find((one) => one.callback_data === data);
  const choice = formatChoice(outcome, chosen?.text ?? "");
  if (message === undefined || choice === null) return;
  await client.call("editMessageText", {
    chat_id: message.chat.id,
    message_id: message.message_id,
    text: `${message.text ?? ""}\n\n${choice}`,
  });
}
