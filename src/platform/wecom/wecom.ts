import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import { Connection } from "../connection.ts";
import { partsOf } from "../message_parts.ts";
import { keepConnected, type Trouble } from "../keep_connected.ts";
import { listen, type Socket } from "../monitored_socket.ts";
import type { Incoming, Platform, Receive, Received } from "../platform.ts";
import { readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { deliveryError, type Frame, WeComClient, WeComError } from "./client.ts";
import { download } from "./download.ts";
import { type FileRef, type Happened, messageOf, pressOf, type Said } from "./message.ts";
import { Sender } from "./send.ts";

const log = logger("wecom");
const BASE_URL = "https://openws.work.weixin.qq.com";
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
// A key that does not count, or another service with it: somebody has to do something first, and two must not fight.
const REFUSED_PAUSE_MS = 300_000;
const LIMITED_PAUSE_MS = 60_000;
const PING_MS = 30_000;
// About a minute in all.
const STORE_AGAIN: Backoff = { firstMs: 500, lastMs: 15_000 };
const STORES_MAX = 8;
// WeCom takes 20,480 bytes; a character has up to three.
const LIMITS = { characters: 5_000, fileBytes: 50_000_000 };
// What WeCom does not take out of its frames by itself, and JSON does not allow.
// deno-lint-ignore no-control-regex
const CONTROLS = /[\x00-\x08\x0b-\x0d\x0e-\x1f]/g;

interface Settings {
  bot_id: string;
  secret: string;
  base_url: string;
}

/** Another connection of this bot has taken the place of ours. */
class Displaced extends Error {}

/** A smart bot of WeCom: a socket that it opens itself, so no public address is needed (contract 10, decision 0023). */
export function createWeCom(name: string, settings: Settings, clock: Clock): Platform {
  const client = new WeComClient(clock);
  const sender = new Sender(client);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  let running = Promise.resolve();
  return {
    name,
    kind: "wecom",
    takesFiles: true,
    start(receive) {
      if (settings.bot_id === "" || settings.secret === "") {
        return connection.become("refused", "it needs bot_id and secret");
      }
      const parts = { client, sender, settings, connection, clock, receive, signal: stopped.signal };
      const session = (wellAgain: () => void) => work({ ...parts, wellAgain });
      running = keepConnected({ ...parts, retry: RETRY, session, troubleOf });
    },
    async stop() {
      stopped.abort();
      await running;
    },
    cut: (content, media) => partsOf(content, media, LIMITS),
    deliver: (delivery) => sender.deliver(delivery),
    progress: (progress) => sender.showProgress(progress),
    async fetch(ref, signal) {
      return await download(JSON.parse(ref) as FileRef, settings.base_url, signal);
    },
    async test() {
      // A second connection would end the first one, so the first one is asked.
      const { state, error } = connection.health;
      if (state !== "connected") throw new Error(error === "" ? `it is ${state}` : error);
      await client.call("ping", undefined).catch((reason) => {
        throw deliveryError(reason);
      });
      return `the bot ${settings.bot_id} is connected`;
    },
    health: () => connection.health,
  };
}

interface Work {
  client: WeComClient;
  sender: Sender;
  settings: Settings;
  connection: Connection;
  clock: Clock;
  receive: Receive;
  signal: AbortSignal;
  wellAgain: () => void;
}

async function work(parts: Work): Promise<void> {
  const { client, settings: { bot_id, secret, base_url } } = parts;
  try {
    await listen({
      ...parts,
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
        await take(parts, JSON.parse(new TextDecoder().decode(data).replace(CONTROLS, "")), socket);
      },
    });
  } finally {
    client.detach();
  }
}

const SUBSCRIBE = "aibot_subscribe_1";

async function take(parts: Work, frame: Frame, socket: Socket): Promise<void> {
  const { client, connection } = parts;
  const callback = frame.headers?.req_id ?? "";
  if (frame.cmd === "aibot_msg_callback") {
    connection.seen();
    await hear(parts, frame.body as Said, callback);
  } else if (frame.cmd === "aibot_event_callback") {
    connection.seen();
    await happen(parts, frame.body as Happened | undefined, callback);
  } else if (callback === SUBSCRIBE) {
    const { errcode = 0, errmsg = "" } = frame;
    if (errcode !== 0) throw new WeComError(errcode, errmsg);
    client.attach(socket);
    parts.wellAgain();
    socket.ready();
  } else client.answer(frame);
}

async function hear(parts: Work, said: Said, callback: string): Promise<void> {
  const incoming = readOrLeave("WeCom", () => messageOf(said));
  if (incoming === null) return;
  parts.sender.remember(incoming.id, callback);
  await store(parts, incoming);
}

async function happen(parts: Work, happened: Partial<Happened> | undefined, callback: string): Promise<void> {
  if (happened?.event?.eventtype === "disconnected_event") {
    throw new Displaced("another connection uses this bot: WeCom allows one");
  }
  const incoming = readOrLeave("WeCom", () => pressOf(happened as Happened));
  if (incoming === null) return;
  const received = await store(parts, incoming);
  // Shown to people, so nothing depends on it.
  void parts.sender.confirm(callback, incoming.repliesTo, incoming.choice, received?.outcome).catch(
    (error) => {
      log.info("A button of WeCom stays as it is: {error}", { error });
    },
  );
}

// WeCom tells nothing twice: what cannot be stored now is tried again, and what follows waits for it.
async function store({ receive, clock, signal }: Work, incoming: Incoming): Promise<Received | null> {
  for (let tries = 1;; tries++) {
    try {
      return await storeOrLeave("WeCom", receive, incoming);
    } catch (error) {
      if (tries === STORES_MAX || signal.aborted) throw error;
      log.warning("A message of WeCom cannot be stored yet: {error}", { error });
      await sleep(clock, backoffMs(STORE_AGAIN, tries), signal);
    }
  }
}

function troubleOf(error: unknown): Trouble {
  if (error instanceof Displaced) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  if (!(error instanceof WeComError)) return { state: "down", pauseMs: null };
  if (error.isRefusal) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  return deliveryError(error).why === "limited"
    ? { state: "limited", pauseMs: LIMITED_PAUSE_MS }
    : { state: "down", pauseMs: null };
}
