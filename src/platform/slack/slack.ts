import { LRUCache } from "lru-cache";
import { createLogger } from "../../base/log.ts";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { Session } from "../keep_connected.ts";
import type { PlatformBase } from "../manifest.ts";
import { listen } from "../monitored_socket.ts";
import type { IncomingMessage, Outcome, Platform } from "../platform.ts";
import { formatChoice, parseOrDrop, showOutcome, storeOrDrop } from "../receive_guard.ts";
import { SlackClient, SlackError } from "./client.ts";
import { readMissedMessages } from "./history.ts";
import { type Envelope, type Event, parseEnvelope, type Press } from "./message.ts";
import { buildText, deliver, showProgress } from "./send.ts";
import { Threads } from "./threads.ts";

const log = createLogger("slack");
const PING_MS = 10_000;
// Messages of which the process knows that they have the reaction.
const SEEN_MAX = 1_000;

/** Creates a Slack app. The app opens a socket, so it needs no public address. */
export function createSlack(
  base: PlatformBase,
  settings: Record<"app_token" | "bot_token" | "base_url", string>,
): Platform {
  const { app_token, bot_token, base_url } = settings;
  const client = new SlackClient(bot_token, base_url);
  const sockets = new SlackClient(app_token, base_url);
  const seen = new LRUCache<string, true>({ max: SEEN_MAX });
  const threads = new Threads(client);
  return createConnectedPlatform({
    ...{ base, required: { app_token, bot_token } },
    createSession: (deps) => createSession({ ...deps, client, sockets, threads }),
    deliver: (delivery) => deliver(client, delivery),
    progress(progress) {
      const message = `${progress.chat} ${progress.answers}`;
      // A reaction stays, so one is enough.
      if (progress.text === null && seen.has(message)) return Promise.resolve("");
      if (progress.text === null) seen.set(message, true);
      return showProgress(client, progress);
    },
    fetch: (ref, signal) => client.download(ref, signal),
    async test() {
      const { user, team } = await client.call<{ user: string; team: string }>("auth.test", {});
      await sockets.call("apps.connections.open", {});
      return `the bot is ${user} in ${team}`;
    },
  });
}

interface Slack extends SessionDeps {
  client: SlackClient;
  sockets: SlackClient;
  threads: Threads;
}

function createSession(slack: Slack): Session {
  // A socket that Slack replaces stays open until the next one is open. After any other end, messages may be missing.
  let hasGap = true;
  let reading = new AbortController();
  return async (resetBackoff) => {
    // Two readers of one history would share its rate limit.
    if (hasGap) {
      reading.abort();
      reading = new AbortController();
    }
    const readingSignal = AbortSignal.any([slack.signal, reading.signal]);
    const lastHeard = hasGap ? slack.lastHeard : () => Promise.resolve([]);
    hasGap = true;
    await runSession({ ...slack, lastHeard, readingSignal, resetBackoff });
    hasGap = false;
  };
}

interface Work extends Slack {
  resetBackoff: () => void;
  /** Aborts at the next gap, whose history starts where this one does. */
  readingSignal: AbortSignal;
}

/** Listens on one socket until Slack wants the next one. Throws when the socket ends. */
async function runSession({ sockets, resetBackoff, ...deps }: Work): Promise<void> {
  const { client, threads } = deps;
  const { user_id } = await client.call<{ user_id: string }>("auth.test", {}, deps.signal);
  const { url } = await sockets.call<{ url: string }>("apps.connections.open", {}, deps.signal);
  const { heard, heardUpTo } = await storeGap(deps);
  threads.remember(heard);
  // Runs next to the socket: Slack wants the acknowledgement of a new message within 3 s.
  const readHistory = async () => {
    const { clock, readingSignal: signal, gap } = deps;
    const missed = readMissedMessages({ client, clock, heard, heardUpTo, botId: user_id, signal });
    for await (const found of missed) await storeMessage(deps, found, user_id);
    if (heard.length > 0 && !signal.aborted) await gap?.save("");
  };
  await listen({
    ...deps,
    platform: "Slack",
    url,
    pingMs: PING_MS,
    async take(data, socket) {
      const frame = JSON.parse(new TextDecoder().decode(data));
      if (frame.type === "hello") {
        socket.ready();
        void readHistory().catch((error) =>
          log.warning("Cannot read the history of Slack: {error}", { error })
        );
      } else if (frame.type === "disconnect") {
        if (frame.reason === "link_disabled") throw new SlackError("link_disabled");
        socket.next();
      } else if (typeof frame.envelope_id === "string") {
        deps.connection.recordEvent();
        resetBackoff();
        await handleEnvelope(deps, frame, user_id);
        // Slack sends an unacknowledged message again, which changes nothing.
        socket.send(JSON.stringify({ envelope_id: frame.envelope_id }));
      }
    },
  });
}

/** Stores the start of the gap before a new message hides it. A gap that is not read yet keeps its start. */
async function storeGap({ lastHeard, gap }: Pick<Work, "lastHeard" | "gap">) {
  const heard = await lastHeard();
  const newest = heard.reduce((last, { id }) => id > last ? id : last, "");
  const heardUpTo = await gap?.find() || newest;
  if (heard.length > 0) await gap?.save(heardUpTo);
  return { heard, heardUpTo };
}

type Deps = Pick<Work, "client" | "receive" | "threads">;

async function handleEnvelope(deps: Deps, envelope: Envelope, botId: string): Promise<void> {
  const incoming = parseOrDrop("Slack", () => parseEnvelope(envelope, botId));
  if (incoming === null) return;
  if (envelope.type === "events_api") {
    await storeMessage(deps, { incoming, event: envelope.payload.event }, botId);
  } else if (envelope.type === "interactive") {
    const received = await storeOrDrop("Slack", deps.receive, incoming);
    showOutcome("Slack", () => confirm(deps.client, envelope.payload, received?.outcome));
  }
}

async function storeMessage(
  { receive, threads }: Deps,
  { incoming, event }: { incoming: IncomingMessage; event: Event },
  botId: string,
): Promise<void> {
  const received = await storeOrDrop("Slack", receive, await threads.complete(incoming, event, botId));
  if (received !== null && received.outcome !== "ignored") threads.rememberMessage(incoming);
}

/** Replaces the buttons. */
async function confirm(
  client: SlackClient,
  { container, message, actions: [action] }: Press,
  outcome: Outcome,
): Promise<void> {
  const choice = formatChoice(outcome, action?.text?.text ?? "");
  if (choice === null) return;
  await client.call("chat.update", {
    channel: container.channel_id,
    ts: container.message_ts,
    ...buildText(""),
    text: `${message?.text ?? ""}\n\n${choice}`,
    blocks: [],
  });
}
