import type { Backoff } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import { Connection } from "../connection.ts";
import { beginningOf, partsOf } from "../message_parts.ts";
import { keepConnected, type Trouble } from "../keep_connected.ts";
import type { Gap, Heard, Incoming, Platform, Receive, Received } from "../platform.ts";
import { readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { askedMs } from "../retry_after.ts";
import { type Channel, Channels, type Server } from "./channels.ts";
import { deliveryError, DiscordClient, DiscordError } from "./client.ts";
import { GatewayRefused, listen, type Session } from "./gateway.ts";
import { History } from "./history.ts";
import { offerCommands } from "./commands.ts";
import { type Interaction, labelOf, type Message, messageOf, saidBy, typedOf } from "./message.ts";
import { deliver, showProgress } from "./send.ts";

const log = logger("discord");
const RETRY: Backoff = { firstMs: 500, lastMs: 60_000 };
/** A connection that held for so long was a good one. Discord counts new sessions, and takes the key of who begins too many in a day. */
const STEADY_MS = 60_000;
// A new session begins after 1 to 5 times as long, as Discord asks for.
const NEW_MS = 1_000;
// A key or a right that is missing: somebody has to do something first.
const REFUSED_PAUSE_MS = 300_000;
// Discord takes 2,000 characters; marks that are escaped need some room.
const LIMITS = { characters: 1_800, fileBytes: 10_000_000 };
const CONTENT_FLAGS = (1 << 18) | (1 << 19);
/** What happens to a message whose button was pressed: it changes, or an answer that the presser alone sees. */
const CHANGE = 7;
const ANSWER = 4;
const ALONE = 64;
// Of a question that was answered; the answer needs the rest of 2,000.
const ASKED_CHARACTERS = 1_850;

interface Settings {
  token: string;
  base_url: string;
}

/** A bot of Discord: a gateway that it connects to, so no public address is needed (contract 10, decision 0023). */
export function createDiscord(name: string, settings: Settings, clock: Clock): Platform {
  const client = new DiscordClient(settings.token, settings.base_url, clock);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  let running = Promise.resolve();
  return {
    name,
    kind: "discord",
    takesFiles: true,
    start(receive, lastHeard, gap) {
      if (settings.token === "") return connection.become("refused", "it has no token");
      const { token } = settings;
      const { signal } = stopped;
      running = run({ client, token, connection, clock, receive, lastHeard, gap, signal });
    },
    async stop() {
      stopped.abort();
      await running;
    },
    cut: (content, media) => partsOf(content, media, LIMITS),
    deliver: (delivery) => deliver(client, delivery),
    progress: (progress) => showProgress(client, progress),
    async fetch(ref, signal) {
      return await client.download(ref, signal).catch((error) => {
        throw deliveryError(error);
      });
    },
    async test() {
      const { username } = await client.call<{ username: string }>("GET", "/users/@me");
      const { flags = 0 } = await client.call<{ flags?: number }>("GET", "/applications/@me");
      if ((flags & CONTENT_FLAGS) === 0) {
        throw new Error(
          `the bot is ${username}, but its intent Message Content is off in the developer portal`,
        );
      }
      return `the bot is ${username}`;
    },
    health: () => connection.health,
  };
}

interface Run {
  client: DiscordClient;
  token: string;
  connection: Connection;
  clock: Clock;
  receive: Receive;
  lastHeard: () => Promise<Heard[]>;
  gap: Gap | undefined;
  signal: AbortSignal;
}

async function run(parts: Run): Promise<void> {
  const { clock, signal } = parts;
  const channels = new Channels(parts.client);
  const bot: Bot = { ...parts, channels, history: new History({ ...parts, channels }) };
  let session: Session | null = null;
  let isFirst = true;
  const work = async (wellAgain: () => void) => {
    if (session === null && !isFirst) await sleep(clock, NEW_MS * (1 + 4 * Math.random()), signal);
    isFirst = false;
    const beganAt = clock.monotonic();
    const ended = await connect(bot, session);
    session = ended.session;
    if (clock.monotonic() - beganAt >= STEADY_MS) wellAgain();
    throw new Error(ended.why);
  };
  await keepConnected({ ...parts, retry: RETRY, session: work, troubleOf });
}

function troubleOf(error: unknown): Trouble {
  if (error instanceof GatewayRefused) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  if (!(error instanceof DiscordError)) return { state: "down", pauseMs: null };
  const { status, retryAfterMs } = error;
  if (status === 401) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  return { state: status === 429 ? "limited" : "down", pauseMs: retryAfterMs };
}

/** What is known of Discord while it runs. */
interface Bot extends Run {
  channels: Channels;
  history: History;
}

interface Ready {
  user: { id: string };
  application: { id: string };
  /** Of each, GUILD_CREATE tells later. */
  guilds?: { id: string }[];
}

interface Start {
  url: string;
  session_start_limit: { remaining: number; reset_after: number };
}

async function connect(bot: Bot, last: Session | null) {
  const { client, token, clock, connection, signal } = bot;
  const session = last !== null && client.isDiscord(last.url) ? last : null;
  const url = session?.url ?? await newGateway(client, signal);
  const handle = (event: { name: string; data: unknown }, ended: AbortSignal) =>
    take(bot, event, AbortSignal.any([signal, ended]));
  return await listen({ url, token, session, clock, connection, handle, signal });
}

/** Where a new session begins. Throws DiscordError when none may begin today. */
async function newGateway(client: DiscordClient, signal: AbortSignal): Promise<string> {
  const { url, session_start_limit } = await client.call<Start>("GET", "/gateway/bot", { signal });
  const { remaining, reset_after } = session_start_limit;
  if (remaining === 0) {
    const retryAfterMs = askedMs(reset_after / 1000);
    throw new DiscordError(429, "Discord lets the bot begin no more sessions today", { retryAfterMs });
  }
  if (!client.isDiscord(url)) throw new Error("Discord named a gateway outside of Discord");
  return url;
}

async function take(
  parts: Bot,
  { name, data }: { name: string; data: unknown },
  signal: AbortSignal,
): Promise<void> {
  const { channels, history } = parts;
  switch (name) {
    case "READY": {
      const { user, application, guilds = [] } = data as Ready;
      channels.become(user.id);
      void offerCommands(parts.client, application.id, signal);
      await tell(parts, await history.begin(await parts.lastHeard(), guilds, signal));
      return await history.told();
    }
    case "GUILD_CREATE": {
      const server = data as Server;
      channels.learn(server);
      await tell(parts, await history.open(server, signal));
      return await history.told(server);
    }
    case "CHANNEL_CREATE":
    case "THREAD_CREATE":
      return channels.learn({ channels: [data as Channel] });
    case "THREAD_LIST_SYNC":
      return channels.learn({ threads: (data as Server).threads ?? [] });
    case "MESSAGE_CREATE":
      return await hear(parts, channels, data as Message, signal);
    case "INTERACTION_CREATE":
      return await act(parts, channels, data as Interaction, signal);
  }
}

async function tell({ receive }: Run, said: readonly Incoming[]): Promise<void> {
  for (const incoming of said) await storeOrLeave("Discord", receive, incoming);
}

async function hear(
  { receive }: Run,
  channels: Channels,
  message: Message & { guild_id?: string },
  signal: AbortSignal,
): Promise<void> {
  const where = message.guild_id === undefined
    ? { chat: message.channel_id, thread: "", isDirect: true }
    : await channels.find(message.channel_id, signal);
  const incoming = where === null
    ? null
    : readOrLeave("Discord", () => messageOf(message, where, channels.me));
  if (incoming !== null) await storeOrLeave("Discord", receive, incoming);
}

async function act(
  { client, receive }: Run,
  channels: Channels,
  interaction: Interaction,
  signal: AbortSignal,
): Promise<void> {
  const where = await channels.find(interaction.channel_id, signal);
  const incoming = where === null ? null : readOrLeave("Discord", () => saidBy(interaction, where));
  if (incoming === null) return;
  const received = await storeOrLeave("Discord", receive, incoming);
  void confirm(client, interaction, received?.outcome);
}

// Shown to people, so nothing depends on it.
async function confirm(
  client: DiscordClient,
  interaction: Interaction,
  outcome: Received["outcome"] | undefined,
): Promise<void> {
  try {
    const { id, token } = interaction;
    const body = typedOf(interaction) === ""
      ? afterPress(interaction, outcome)
      : afterCommand(interaction, outcome);
    await client.call("POST", `/interactions/${id}/${token}/callback`, { body, isOpen: true });
  } catch (error) {
    log.info("A button or command of Discord stays as it is: {error}", { error });
  }
}

/** The question loses its buttons. */
function afterPress(pressed: Interaction, outcome: Received["outcome"] | undefined): object {
  const isAnswered = outcome === "queued" || outcome === "repeated";
  if (!isAnswered && outcome !== "late") return alone("You may not answer here.");
  const words = isAnswered ? `> ${labelOf(pressed)}` : "(not open any more)";
  const content = `${beginningOf(pressed.message?.content ?? "", ASKED_CHARACTERS)}\n\n${words}`;
  return { type: CHANGE, data: { content, allowed_mentions: { parse: [] }, components: [] } };
}

/** What a command does is said in the chat; this only says that it was heard. */
function afterCommand(given: Interaction, outcome: Received["outcome"] | undefined): object {
  const isHeard = outcome === "queued" || outcome === "repeated" || outcome === "over";
  return alone(isHeard ? `> ${beginningOf(typedOf(given), ASKED_CHARACTERS)}` : "You may not say this here.");
}

function alone(content: string): object {
  return { type: ANSWER, data: { content, allowed_mentions: { parse: [] }, flags: ALONE } };
}
