import { Buffer } from "node:buffer";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import { MessageSigns } from "../message_signs.ts";
import { listen, type Socket } from "../monitored_socket.ts";
import type { Outcome, Platform, Receive } from "../platform.ts";
import { CLOSED_QUESTION, formatChoice, MAY_NOT_ANSWER, parseOrDrop, storeOrDrop } from "../receive_guard.ts";
import { parseJsonObject } from "../request.ts";
import { buildCard } from "./card.ts";
import { FeishuClient, type FeishuSettings } from "./client.ts";
import { Frame } from "./frame.ts";
import { type FeishuEvent, isMessage, isPress, parseEvent, type PressValue } from "./message.ts";
import { Pieces } from "./pieces.ts";
import { Quotes } from "./quotes.ts";
import { deliver, isMessageId, showText } from "./send.ts";

// Feishu asks for a ping interval. These limits make sure that the service notices a dead connection.
const PING_MAX_MS = 30_000;
const PING_MIN_MS = 1_000;

interface Bot {
  bot: { open_id: string; app_name: string };
}

/** Creates an app of Feishu or Lark. The app opens a connection, so it needs no public address. */
export function createFeishu(base: PlatformBase, settings: FeishuSettings): Platform {
  const { app_id, app_secret } = settings;
  const client = new FeishuClient(settings, base.clock);
  const signs = createSigns(client);
  const quotes = new Quotes(client, app_id);
  return createConnectedPlatform({
    ...{ base, required: { app_id, app_secret } },
    createSession: (deps) => (resetBackoff) => runSession(client, { ...deps, quotes }, resetBackoff),
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

// Feishu has no typing sign, so the message gets a reaction.
function createSigns(client: FeishuClient): MessageSigns {
  const buildPath = (message: string) => `/im/v1/messages/${message}/reactions`;
  const body = { reaction_type: { emoji_type: "Typing" } };
  return new MessageSigns({
    platform: "Feishu",
    async add(message) {
      if (!isMessageId(message)) return "";
      return (await client.call<{ reaction_id: string }>("POST", buildPath(message), { body })).reaction_id;
    },
    remove: (message, reaction) => client.call("DELETE", `${buildPath(message)}/${reaction}`),
  });
}

/** Listens on one long connection. Acknowledges an event after storing it. Throws when the connection ends. */
async function runSession(
  client: FeishuClient,
  deps: SessionDeps & { quotes: Quotes },
  resetBackoff: () => void,
): Promise<void> {
  const { bot } = await client.call<Bot>("GET", "/bot/v3/info", { signal: deps.signal });
  const { url, pingMs } = await client.connection(deps.signal);
  const service = Number(URL.parse(url)?.searchParams.get("service_id") ?? 0);
  const pieces = new Pieces();
  await listen({
    ...deps,
    platform: "Feishu",
    url,
    pingMs: limitInterval(pingMs ?? PING_MAX_MS),
    ping: (wire) => wire.send(Frame.ping(service).encode()),
    isReadyWhenOpen: true,
    async take(data, socket) {
      const frame = Frame.decode(new Uint8Array(data));
      if (!frame.isData) return configure(frame, socket);
      if (frame.header("type") !== "event") return;
      const place = { sum: Number(frame.header("sum")), at: Number(frame.header("seq")) };
      const whole = pieces.add(frame.header("message_id"), place, frame.payload);
      if (whole === null) return;
      deps.connection.recordEvent();
      resetBackoff();
      const event = parseJsonObject<FeishuEvent>(new TextDecoder().decode(whole)) as FeishuEvent;
      const answer = await handleEvent(deps, event, bot.open_id);
      socket.send(frame.answer(buildAcknowledgement(answer)).encode());
    },
  });
}

function limitInterval(ms: number): number {
  return Math.min(Math.max(ms, PING_MIN_MS), PING_MAX_MS);
}

// A pong can contain another interval.
function configure(frame: Frame, socket: Socket): void {
  if (frame.header("type") !== "pong" || frame.payload.length === 0) return;
  const { PingInterval: seconds } = JSON.parse(new TextDecoder().decode(frame.payload));
  if (typeof seconds === "number") socket.pingEvery(limitInterval(seconds * 1000));
}

function buildAcknowledgement(answer: object | null): Uint8Array {
  const data = answer === null ? {} : { data: Buffer.from(JSON.stringify(answer)).toString("base64") };
  return new TextEncoder().encode(JSON.stringify({ code: 200, ...data }));
}

/** Stores an event. Returns the answer to a press. */
async function handleEvent(
  { receive, quotes }: { receive: Receive; quotes: Quotes },
  event: FeishuEvent,
  botId: string,
): Promise<object | null> {
  const parsed = parseOrDrop("Feishu", () => parseEvent(event, botId));
  if (parsed === null) return null;
  const incoming = isMessage(event) ? await quotes.complete(parsed, event.event.message) : parsed;
  const received = await storeOrDrop("Feishu", receive, incoming);
  if (isMessage(event) && received !== null && received.outcome !== "ignored") quotes.remember(incoming);
  return isPress(event) ? answerPress(event.event.action.value ?? {}, received?.outcome) : null;
}

/** Formats a toast for the person who pressed, and the question without buttons for all. */
function answerPress(
  { label = "", text = "" }: Partial<PressValue>,
  outcome: Outcome,
): object {
  const choice = formatChoice(outcome, label);
  if (choice === null) return { toast: { type: "error", content: MAY_NOT_ANSWER } };
  const toast = outcome === "late"
    ? { type: "info", content: CLOSED_QUESTION }
    : { type: "success", content: label };
  return { toast, card: { type: "raw", data: buildCard(`${text}\n\n${choice}`) } };
}
