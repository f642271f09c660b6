import type { Backoff } from "../../base/backoff.ts";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import type { Platform, ReceiveResult } from "../platform.ts";
import { CLOSED_QUESTION, formatChoice, MAY_NOT_ANSWER, parseOrDrop, storeOrDrop } from "../receive_guard.ts";
import { buildCard } from "./card.ts";
import { FeishuClient, type FeishuSettings } from "./client.ts";
import { type FeishuEvent, isPress, parseEvent, type PressValue } from "./message.ts";
import { deliver, showText } from "./send.ts";
import { Signs } from "./sign.ts";
import { listenFrames } from "./socket.ts";

const RETRY: Backoff = { firstMs: 500, lastMs: 60_000 };

interface Bot {
  bot: { open_id: string; app_name: string };
}

/** Creates an app of Feishu or Lark. The app opens a connection, so it needs no public address. */
export function createFeishu(base: PlatformBase, settings: FeishuSettings): Platform {
  const { app_id, app_secret } = settings;
  const client = new FeishuClient(settings, base.clock);
  const signs = new Signs(client);
  return createConnectedPlatform({
    ...{ base, retry: RETRY, required: { app_id, app_secret } },
    createSession: (deps) => (resetBackoff) => runSession(client, deps, resetBackoff),
    async deliver(delivery) {
      const sentAs = await deliver(client, delivery);
      signs.remove(delivery.answers);
      return sentAs;
    },
    async progress(progress) {
      if (progress.text !== null) return await showText(client, progress, progress.text);
      await signs.add(progress.answers);
      return progress.sentAs;
    },
    fetch: (ref, signal) => client.download(ref, signal),
    async test() {
      const { bot } = await client.call<Bot>("GET", "/bot/v3/info");
      await client.connection();
      return `the bot is ${bot.app_name}`;
    },
  });
}

async function runSession(
  client: FeishuClient,
  { receive, ...deps }: SessionDeps,
  resetBackoff: () => void,
): Promise<void> {
  const { bot } = await client.call<Bot>("GET", "/bot/v3/info", { signal: deps.signal });
  const { url, pingMs } = await client.connection(deps.signal);
  const handle = async (event: FeishuEvent) => {
    resetBackoff();
    const incoming = parseOrDrop("Feishu", () => parseEvent(event, bot.open_id));
    const received = incoming === null ? null : await storeOrDrop("Feishu", receive, incoming);
    return incoming !== null && isPress(event)
      ? answerPress(event.event.action.value ?? {}, received?.outcome)
      : null;
  };
  await listenFrames({ ...deps, url, pingMs, handle });
}

/** Formats a toast for the person who pressed, and the question without buttons for all. */
function answerPress(
  { label = "", text = "" }: Partial<PressValue>,
  outcome: ReceiveResult["outcome"] | undefined,
): object {
  const choice = formatChoice(outcome, label);
  if (choice === null) return { toast: { type: "error", content: MAY_NOT_ANSWER } };
  const toast = outcome === "late"
    ? { type: "info", content: CLOSED_QUESTION }
    : { type: "success", content: label };
  return { toast, card: { type: "raw", data: buildCard(`${text}\n\n${choice}`) } };
}
