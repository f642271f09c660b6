import type { Backoff } from "../../base/backoff.ts";
import { sleep } from "../../base/clock.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import { DeliveryError, type MoveChat, type Outcome, type Platform } from "../platform.ts";
import {
  CLOSED_QUESTION,
  formatChoice,
  isAnswered,
  MAY_NOT_ANSWER,
  parseOrDrop,
  showOutcome,
  storeOrDrop,
} from "../receive_guard.ts";
import { Albums } from "./albums.ts";
import { TelegramClient, TelegramError } from "./client.ts";
import type { User } from "./content.ts";
import { type ButtonPress, parseMove, parseUpdate, type Update } from "./message.ts";
import { deliver, showProgress } from "./send.ts";

const POLL_S = 30;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
// Short, since another program with the same token can end at any time.
const REFUSED_PAUSE_MS = 60_000;
// Pause between polls while there are unconfirmed updates, because Telegram returns those immediately.
const HELD_PAUSE_MS = 250;

/** Creates a Telegram bot. The bot polls, so it needs no public address. */
export function createTelegram(base: PlatformBase, settings: Record<"token" | "base_url", string>): Platform {
  const { token, base_url } = settings;
  const client = new TelegramClient(token, base_url);
  let move: MoveChat = () => Promise.resolve();
  return createConnectedPlatform({
    ...{ base, retry: RETRY, refusedPauseMs: REFUSED_PAUSE_MS, required: { token } },
    createSession(deps) {
      move = deps.move;
      const albums = new Albums();
      return (resetBackoff) => poll({ ...deps, client, albums }, resetBackoff);
    },
    deliver: (delivery) => followChat(delivery, (one) => deliver(client, one), move),
    progress: (progress) => followChat(progress, (one) => showProgress(client, one), move),
    fetch: (ref, signal) => client.download(ref, signal),
    async test() {
      const me = await client.call<User>("getMe", {});
      return `the bot is @${me.username ?? me.id}`;
    },
  });
}

/** Sends to a chat. If the chat has become a supergroup, sends again to the new id after the service has stored it. */
async function followChat<T extends { chat: string; answers: string; sentAs?: string }>(
  given: T,
  send: (given: T) => Promise<string>,
  move: MoveChat,
): Promise<string> {
  try {
    return await send(given);
  } catch (error) {
    if (!(error instanceof TelegramError) || error.movedTo === "") throw error;
    await move(given.chat, error.movedTo).catch((failure) => {
      throw new DeliveryError("limited", `Cannot store the new id of the chat: ${failure}`, {
        scope: "chat",
      });
    });
    // The new chat does not have the old chat's messages, so the bot cannot edit or answer them there.
    return given.sentAs ? "" : await send({ ...given, chat: error.movedTo, answers: "" });
  }
}

interface Poll extends SessionDeps {
  client: TelegramClient;
  albums: Albums;
}

/** Polls until a request fails. The next poll confirms an update, after the service stored its message. */
async function poll(bot: Poll, resetBackoff: () => void): Promise<void> {
  const { client, albums, connection, clock, signal } = bot;
  const me = await client.call<User>("getMe", {}, { signal });
  connection.setState("connected");
  const handled = new Set<number>();
  let offset: number | undefined;
  while (!signal.aborted) {
    const updates = await client.call<Update[]>("getUpdates", {
      ...(offset === undefined ? {} : { offset }),
      timeout: POLL_S,
      allowed_updates: ["message", "callback_query"],
    }, { holdMs: POLL_S * 1000, signal });
    resetBackoff();
    for (const update of updates.filter(({ update_id }) => !handled.has(update_id))) {
      connection.recordEvent();
      await handle(bot, update, me);
      handled.add(update.update_id);
      if (update !== updates.at(-1)) await yieldToLoop();
    }
    const last = updates.at(-1);
    const unconfirmed = albums.findUnconfirmed(clock.now());
    if (unconfirmed !== undefined && handled.has(unconfirmed)) {
      offset = unconfirmed;
      await sleep(clock, HELD_PAUSE_MS, signal);
      continue;
    }
    if (last !== undefined) offset = last.update_id + 1;
    handled.clear();
  }
}

async function handle(
  { client, albums, clock, receive, move }: Poll,
  update: Update,
  me: User,
): Promise<void> {
  const moved = parseOrDrop("Telegram", () => parseMove(update));
  if (moved !== null) await move(moved.from, moved.to);
  const incoming = parseOrDrop("Telegram", () => parseUpdate(update, me));
  const received = incoming === null ? null : await storeOrDrop("Telegram", receive, incoming);
  const press = update.callback_query;
  if (press !== undefined) showOutcome("Telegram", () => confirm(client, press, received?.outcome));
  if (incoming === null || received === null || (incoming.album ?? "") === "" || incoming.isDirect) return;
  if (received.outcome === "ignored") return albums.hold(update.update_id, incoming, clock.now());
  for (const other of albums.take(incoming)) await storeOrDrop("Telegram", receive, other);
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
