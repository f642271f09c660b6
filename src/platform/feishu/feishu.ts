import type { Backoff } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { Connection } from "../connection.ts";
import { partsOf } from "../message_parts.ts";
import { keepConnected, type Trouble } from "../keep_connected.ts";
import type { Platform, Receive, Received } from "../platform.ts";
import { readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { cardOf } from "./card.ts";
import { deliveryError, FeishuClient, FeishuError, type FeishuSettings } from "./client.ts";
import { type FeishuEvent, incomingOf, isPress, type Pressed } from "./message.ts";
import { deliver, showText } from "./send.ts";
import { Signs } from "./sign.ts";
import { listenFrames } from "./socket.ts";

const RETRY: Backoff = { firstMs: 500, lastMs: 60_000 };
// A key that does not count: somebody has to do something first.
const REFUSED_PAUSE_MS = 300_000;
// A card has 30 KB as JSON in JSON, where one character can take six bytes.
const LIMITS = { characters: 4_500, fileBytes: 30_000_000 };

interface Bot {
  bot: { open_id: string; app_name: string };
}

/** An app of Feishu or Lark: a connection that it opens itself, so no public address is needed (contract 10, decision 0023). */
export function createFeishu(name: string, settings: FeishuSettings, clock: Clock): Platform {
  const client = new FeishuClient(settings, clock);
  const signs = new Signs(client);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  const signal = stopped.signal;
  let running = Promise.resolve();
  return {
    name,
    kind: "feishu",
    takesFiles: true,
    start(receive) {
      if (settings.app_id === "" || settings.app_secret === "") {
        return connection.become("refused", "it needs app_id and app_secret");
      }
      const session = (wellAgain: () => void) =>
        work({ client, connection, clock, receive, signal, wellAgain });
      running = keepConnected({ connection, clock, signal, retry: RETRY, session, troubleOf });
    },
    async stop() {
      stopped.abort();
      await running;
    },
    cut: (content, media) => partsOf(content, media, LIMITS),
    async deliver(delivery) {
      const sentAs = await deliver(client, delivery);
      signs.take(delivery.answers);
      return sentAs;
    },
    async progress(progress) {
      if (progress.text !== null) return await showText(client, progress, progress.text);
      await signs.give(progress.answers);
      return progress.sentAs;
    },
    async fetch(ref, signal) {
      return await client.download(ref, signal).catch((error) => {
        throw deliveryError(error);
      });
    },
    async test() {
      const { bot } = await client.call<Bot>("GET", "/bot/v3/info");
      await client.connection();
      return `the bot is ${bot.app_name}`;
    },
    health: () => connection.health,
  };
}

interface Work {
  client: FeishuClient;
  connection: Connection;
  clock: Clock;
  receive: Receive;
  signal: AbortSignal;
  wellAgain: () => void;
}

async function work({ client, receive, wellAgain, ...parts }: Work): Promise<void> {
  const { bot } = await client.call<Bot>("GET", "/bot/v3/info", { signal: parts.signal });
  const { url, pingMs } = await client.connection(parts.signal);
  const handle = async (event: FeishuEvent) => {
    wellAgain();
    const incoming = readOrLeave("Feishu", () => incomingOf(event, bot.open_id));
    const received = incoming === null ? null : await storeOrLeave("Feishu", receive, incoming);
    return incoming !== null && isPress(event)
      ? shownAfter(event.event.action.value ?? {}, received?.outcome)
      : null;
  };
  await listenFrames({ ...parts, url, pingMs, handle });
}

function troubleOf(error: unknown): Trouble {
  if (!(error instanceof FeishuError)) return { state: "down", pauseMs: null };
  if (error.isRefused) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  return { state: error.limited === null ? "down" : "limited", pauseMs: error.retryAfterMs };
}

/** What the one who pressed sees, and the question without its buttons for everybody. */
function shownAfter(
  { label = "", text = "" }: Partial<Pressed>,
  outcome: Received["outcome"] | undefined,
): object {
  if (outcome === "late") {
    const toast = { type: "info", content: "This question is not open any more." };
    return { toast, card: { type: "raw", data: cardOf(`${text}\n\n(not open any more)`) } };
  }
  if (outcome !== "queued" && outcome !== "repeated") {
    return { toast: { type: "error", content: "You may not answer here." } };
  }
  const card = { type: "raw", data: cardOf(`${text}\n\n> ${label}`) };
  return { toast: { type: "success", content: label }, card };
}
