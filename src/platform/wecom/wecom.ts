import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { sleep } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import { ConnectionRefused, createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import { listen, type Socket } from "../monitored_socket.ts";
import type { PlatformBase } from "../manifest.ts";
import { type IncomingMessage, type Platform, type ReceiveResult, toDeliveryError } from "../platform.ts";
import { parseOrDrop, showOutcome, storeOrDrop } from "../receive_guard.ts";
import { type Frame, WeComClient, WeComError } from "./client.ts";
import type { FileRef } from "./content.ts";
import { download } from "./download.ts";
import { parseMessage, parsePress, type WeComEvent, type WeComMessage } from "./message.ts";
import { Sender } from "./send.ts";

const log = createLogger("wecom");
const BASE_URL = "https://openws.work.weixin.qq.com";
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
const PING_MS = 30_000;
// All tries take about a minute.
const STORE_AGAIN: Backoff = { firstMs: 500, lastMs: 15_000 };
const STORES_MAX = 8;
// WeCom's frames can contain control characters, which JSON does not allow.
// deno-lint-ignore no-control-regex
const CONTROLS = /[\x00-\x08\x0b-\x0d\x0e-\x1f]/g;
const SUBSCRIBE = "aibot_subscribe_1";

type Settings = Record<"bot_id" | "secret" | "base_url", string>;

/** Creates a smart bot of WeCom. The bot opens a socket, so it needs no public address. */
export function createWeCom(base: PlatformBase, settings: Settings): Platform {
  const { bot_id, secret, base_url } = settings;
  const client = new WeComClient(base.clock);
  const sender = new Sender(client);
  return createConnectedPlatform({
    ...{ base, retry: RETRY, required: { bot_id, secret } },
    createSession: (deps) => (resetBackoff) =>
      runSession({ ...deps, client, sender, settings, resetBackoff }),
    deliver: (delivery) => sender.deliver(delivery),
    progress: (progress) => sender.showProgress(progress),
    fetch: (ref, signal) => download(JSON.parse(ref) as FileRef, base_url, signal),
    async test(connection) {
      // A second connection would end the first one, so the test uses the first one.
      const { state, error } = connection.health;
      if (state !== "connected") throw new Error(error === "" ? `it is ${state}` : error);
      await client.call("ping", undefined).catch((reason) => {
        throw toDeliveryError(reason);
      });
      return `the bot ${bot_id} is connected`;
    },
  });
}

interface Bot extends SessionDeps {
  client: WeComClient;
  sender: Sender;
  settings: Settings;
  resetBackoff: () => void;
}

async function runSession(bot: Bot): Promise<void> {
  const { client, settings: { bot_id, secret, base_url } } = bot;
  try {
    await listen({
      ...bot,
      platform: "WeCom",
      url: (base_url || BASE_URL).replace(/^http/, "ws"),
      pingMs: PING_MS,
      ping: (wire) => wire.send(JSON.stringify({ cmd: "ping", headers: { req_id: `ping_${Date.now()}` } })),
      greet: (socket) =>
        socket.send(
          JSON.stringify({
            cmd: "aibot_subscribe",
            headers: { req_id: SUBSCRIBE },
            body: { bot_id, secret },
          }),
        ),
      async take(data, socket) {
        await handleFrame(bot, JSON.parse(new TextDecoder().decode(data).replace(CONTROLS, "")), socket);
      },
    });
  } finally {
    client.detach();
  }
}

async function handleFrame(bot: Bot, frame: Frame, socket: Socket): Promise<void> {
  const { client, connection } = bot;
  const callback = frame.headers?.req_id ?? "";
  if (frame.cmd === "aibot_msg_callback") {
    connection.recordEvent();
    await handleMessage(bot, frame.body as WeComMessage, callback);
  } else if (frame.cmd === "aibot_event_callback") {
    connection.recordEvent();
    await handleEvent(bot, frame.body as WeComEvent | undefined, callback);
  } else if (callback === SUBSCRIBE) {
    const { errcode = 0, errmsg = "" } = frame;
    if (errcode !== 0) throw new WeComError(errcode, errmsg);
    client.attach(socket);
    bot.resetBackoff();
    socket.ready();
  } else client.answer(frame);
}

async function handleMessage(bot: Bot, said: WeComMessage, callback: string): Promise<void> {
  const incoming = parseOrDrop("WeCom", () => parseMessage(said));
  if (incoming === null) return;
  bot.sender.remember(incoming.id, callback);
  await storeMessage(bot, incoming);
}

async function handleEvent(
  bot: Bot,
  happened: Partial<WeComEvent> | undefined,
  callback: string,
): Promise<void> {
  if (happened?.event?.eventtype === "disconnected_event") {
    throw new ConnectionRefused("another program uses this bot, and WeCom allows one connection");
  }
  const incoming = parseOrDrop("WeCom", () => parsePress(happened as WeComEvent));
  if (incoming === null) return;
  const received = await storeMessage(bot, incoming);
  const { repliesTo, choice } = incoming;
  showOutcome("WeCom", () => bot.sender.confirm(callback, repliesTo, choice, received?.outcome));
}

// WeCom sends nothing twice. If a message can't be stored now, the service tries again, and later messages wait for it.
async function storeMessage(
  { receive, clock, signal }: Bot,
  incoming: IncomingMessage,
): Promise<ReceiveResult | null> {
  for (let tries = 1;; tries++) {
    try {
      return await storeOrDrop("WeCom", receive, incoming);
    } catch (error) {
      if (tries === STORES_MAX || signal.aborted) throw error;
      log.warning("Cannot store a message of WeCom yet: {error}", { error });
      await sleep(clock, backoffMs(STORE_AGAIN, tries), signal);
    }
  }
}
