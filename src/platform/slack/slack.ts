import { LRUCache } from "lru-cache";
import type { Backoff } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import { Connection } from "../connection.ts";
import { partsOf } from "../message_parts.ts";
import { keepConnected, type Trouble } from "../keep_connected.ts";
import type { Gap, Heard, Platform, Receive, Received } from "../platform.ts";
import { readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { deliveryError, SlackClient, SlackError } from "./client.ts";
import { saidMeanwhile } from "./history.ts";
import { type Envelope, incomingOf, type Press } from "./message.ts";
import { deliver, showProgress, textOf } from "./send.ts";
import { listenEnvelopes } from "./socket.ts";

const log = logger("slack");
const RETRY: Backoff = { firstMs: 500, lastMs: 60_000 };
// A key that does not count: somebody has to do something first.
const REFUSED_PAUSE_MS = 300_000;
// Slack shows 4,000 characters well; marks need some room.
const LIMITS = { characters: 3_500, fileBytes: 1_000_000_000 };
// Messages that were marked as seen.
const SEEN_MAX = 1_000;

interface Settings {
  app_token: string;
  bot_token: string;
  base_url: string;
}

/** An app of Slack: a socket that it opens itself, so no public address is needed (contract 10, decision 0023). */
export function createSlack(name: string, settings: Settings, clock: Clock): Platform {
  const client = new SlackClient(settings.bot_token, settings.base_url);
  const sockets = new SlackClient(settings.app_token, settings.base_url);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  const signal = stopped.signal;
  const seen = new LRUCache<string, true>({ max: SEEN_MAX });
  let running = Promise.resolve();
  return {
    name,
    kind: "slack",
    takesFiles: true,
    start(receive, lastHeard, gap) {
      if (settings.app_token === "" || settings.bot_token === "") {
        return connection.become("refused", "it needs app_token and bot_token");
      }
      // A socket that Slack replaces stays open until the next one is: only otherwise something may be missed.
      let hasGap = true;
      let reading = new AbortController();
      const session = async (wellAgain: () => void) => {
        // Of two readers of one history each would use up the limit of the other.
        if (hasGap) {
          reading.abort();
          reading = new AbortController();
        }
        const isReading = AbortSignal.any([signal, reading.signal]);
        const parts = { client, sockets, connection, clock, receive, signal, wellAgain, gap, isReading };
        const heard = hasGap ? lastHeard : () => Promise.resolve([]);
        hasGap = true;
        await work({ ...parts, lastHeard: heard });
        hasGap = false;
      };
      running = keepConnected({ connection, clock, signal, retry: RETRY, session, troubleOf });
    },
    async stop() {
      stopped.abort();
      await running;
    },
    cut: (content, media) => partsOf(content, media, LIMITS),
    deliver: (delivery) => deliver(client, delivery),
    progress(progress) {
      const message = `${progress.chat} ${progress.answers}`;
      // A reaction stays, so it is given once.
      if (progress.text === null && seen.has(message)) return Promise.resolve("");
      if (progress.text === null) seen.set(message, true);
      return showProgress(client, progress);
    },
    async fetch(ref, signal) {
      return await client.download(ref, signal).catch((error) => {
        throw deliveryError(error);
      });
    },
    async test() {
      const { user, team } = await client.call<{ user: string; team: string }>("auth.test", {});
      await sockets.call("apps.connections.open", {});
      return `the bot is ${user} in ${team}`;
    },
    health: () => connection.health,
  };
}

interface Work {
  client: SlackClient;
  sockets: SlackClient;
  connection: Connection;
  clock: Clock;
  receive: Receive;
  signal: AbortSignal;
  wellAgain: () => void;
  lastHeard: () => Promise<Heard[]>;
  gap: Gap | undefined;
  /** Aborts when there is another gap: its history begins where this one does. */
  isReading: AbortSignal;
}

async function work({ client, sockets, receive, wellAgain, ...parts }: Work): Promise<void> {
  const { user_id } = await client.call<{ user_id: string }>("auth.test", {}, parts.signal);
  const { url } = await sockets.call<{ url: string }>("apps.connections.open", {}, parts.signal);
  const { heard, heardUpTo } = await noteGap(parts);
  const handle = async (envelope: Envelope) => {
    wellAgain();
    await take(client, receive, envelope, user_id);
  };
  // What comes from now on is kept from waiting for what was missed: Slack wants an answer within 3 s.
  const opened = async () => {
    const { clock, isReading: signal, gap } = parts;
    const missed = saidMeanwhile({ client, clock, heard, heardUpTo, botId: user_id, signal });
    for await (const incoming of missed) await storeOrLeave("Slack", receive, incoming);
    if (heard.length > 0 && !signal.aborted) await gap?.save("");
  };
  await listenEnvelopes({ ...parts, url, handle, opened });
}

/** Stores where the gap begins, before anything that is said now is stored; one that is not read yet goes on. */
async function noteGap({ lastHeard, gap }: Pick<Work, "lastHeard" | "gap">) {
  const heard = await lastHeard();
  const newest = heard.reduce((last, { id }) => id > last ? id : last, "");
  const heardUpTo = await gap?.find() || newest;
  if (heard.length > 0) await gap?.save(heardUpTo);
  return { heard, heardUpTo };
}

function troubleOf(error: unknown): Trouble {
  if (!(error instanceof SlackError)) return { state: "down", pauseMs: null };
  const { isRefused, code, retryAfterMs } = error;
  if (isRefused || code === "link_disabled") return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  return { state: code === "ratelimited" ? "limited" : "down", pauseMs: retryAfterMs };
}

async function take(client: SlackClient, receive: Receive, envelope: Envelope, botId: string): Promise<void> {
  const incoming = readOrLeave("Slack", () => incomingOf(envelope, botId));
  const received = incoming === null ? null : await storeOrLeave("Slack", receive, incoming);
  // What could not be read has another form than `confirm` knows.
  if (envelope.type === "interactive" && incoming !== null) {
    void confirm(client, envelope.payload, received?.outcome);
  }
}

// The question loses its buttons: shown to people, so nothing depends on it.
async function confirm(
  client: SlackClient,
  { container, message, actions: [action] }: Press,
  outcome: Received["outcome"] | undefined,
): Promise<void> {
  const isAnswered = outcome === "queued" || outcome === "repeated";
  if (!isAnswered && outcome !== "late") return;
  const words = isAnswered ? `> ${action?.text?.text ?? ""}` : "(not open any more)";
  try {
    await client.call("chat.update", {
      channel: container.channel_id,
      ts: container.message_ts,
      ...textOf(""),
      text: `${message?.text ?? ""}\n\n${words}`,
      blocks: [],
    });
  } catch (error) {
    log.info("A button of Slack stays as it is: {error}", { error });
  }
}
