import { sleep } from "../../base/clock.ts";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { Session } from "../keep_connected.ts";
import type { PlatformBase } from "../manifest.ts";
import { truncate } from "../message_parts.ts";
import type { IncomingMessage, Outcome, Platform } from "../platform.ts";
import {
  formatChoice,
  isAnswered,
  MAY_NOT_ANSWER,
  parseOrDrop,
  showOutcome,
  storeOrDrop,
} from "../receive_guard.ts";
import { parsePauseSeconds } from "../retry_after.ts";
import { type Channel, Channels, type Server } from "./channels.ts";
import { DiscordClient, DiscordError } from "./client.ts";
import { type Event, listen, type Session as GatewaySession } from "./gateway.ts";
import { History } from "./history.ts";
import { registerCommands } from "./commands.ts";
import {
  findLabel,
  formatCommand,
  type Interaction,
  type Message,
  parseInteraction,
  parseMessage,
} from "./message.ts";
import { deliver, showProgress } from "./send.ts";

/** A shorter connection counts as a failure: Discord revokes the token of a bot that starts too many sessions in a day. */
const STEADY_MS = 60_000;
// Discord wants a pause of 1 to 5 times this before a new session.
const NEW_MS = 1_000;
const CONTENT_FLAGS = (1 << 18) | (1 << 19);
/** Types of a response to an interaction: change the message, or send a message that only the person sees. */
const CHANGE = 7;
const ANSWER = 4;
const ALONE = 64;
// Discord's limit of 2,000 characters minus space for the answer to a question.
const ASKED_CHARACTERS = 1_850;

/** Creates a Discord bot. The bot connects to a gateway, so it needs no public address. */
export function createDiscord(base: PlatformBase, settings: Record<"token" | "base_url", string>): Platform {
  const { token, base_url } = settings;
  const client = new DiscordClient(token, base_url, base.clock);
  return createConnectedPlatform({
    ...{ base, required: { token } },
    createSession: (deps) => createSession({ ...deps, client, token }),
    deliver: (delivery) => deliver(client, delivery),
    progress: (progress) => showProgress(client, progress),
    fetch: (ref, signal) => client.download(ref, signal),
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
  });
}

interface Run extends SessionDeps {
  client: DiscordClient;
  token: string;
}

function createSession(run: Run): Session {
  const { client, clock, signal } = run;
  const channels = new Channels(client);
  const bot: Bot = { ...run, channels, history: new History({ ...run, channels }) };
  let session: GatewaySession | null = null;
  let isFirst = true;
  return async (resetBackoff) => {
    if (session === null && !isFirst) await sleep(clock, NEW_MS * (1 + 4 * Math.random()), signal);
    isFirst = false;
    const startedAt = clock.monotonic();
    const ended = await connect(bot, session);
    session = ended.session;
    if (clock.monotonic() - startedAt >= STEADY_MS) resetBackoff();
    throw new Error(ended.why);
  };
}

interface Bot extends Run {
  channels: Channels;
  history: History;
}

interface Ready {
  user: { id: string };
  application: { id: string };
  /** Servers of the bot. Discord sends a GUILD_CREATE for each. */
  guilds?: { id: string }[];
}

interface Start {
  url: string;
  session_start_limit: { remaining: number; reset_after: number };
}

async function connect(bot: Bot, last: GatewaySession | null) {
  const { client, token, clock, connection, signal } = bot;
  const session = last !== null && client.isDiscord(last.url) ? last : null;
  const url = session?.url ?? await findGateway(client, signal);
  const handle = (event: Event, ended: AbortSignal) =>
    handleEvent(bot, event, AbortSignal.any([signal, ended]));
  return await listen({ url, token, session, clock, connection, handle, signal });
}

/** Finds the gateway for a new session. Throws DiscordError when Discord allows no more sessions today. */
async function findGateway(client: DiscordClient, signal: AbortSignal): Promise<string> {
  const { url, session_start_limit } = await client.call<Start>("GET", "/gateway/bot", { signal });
  const { remaining, reset_after } = session_start_limit;
  if (remaining === 0) {
    const retryAfterMs = parsePauseSeconds(reset_after / 1000);
    throw new DiscordError(429, "Discord allows the bot no more sessions today", { retryAfterMs });
  }
  if (!client.isDiscord(url)) throw new Error("Discord named a gateway outside of Discord");
  return url;
}

async function handleEvent(bot: Bot, { name, data }: Event, signal: AbortSignal): Promise<void> {
  const { channels, history } = bot;
  switch (name) {
    case "READY": {
      const { user, application, guilds = [] } = data as Ready;
      channels.setBotId(user.id);
      void registerCommands(bot.client, application.id, signal);
      await storeMessages(bot, await history.startGap(await bot.lastHeard(), guilds, signal));
      return await history.markStored();
    }
    case "GUILD_CREATE": {
      const server = data as Server;
      channels.store(server);
      await storeMessages(bot, await history.readServer(server, signal));
      return await history.markStored(server);
    }
    case "CHANNEL_CREATE":
    case "THREAD_CREATE":
      return channels.store({ channels: [data as Channel] });
    case "THREAD_LIST_SYNC":
      return channels.store({ threads: (data as Server).threads ?? [] });
    case "MESSAGE_CREATE":
      return await receiveMessage(bot, data as Message, signal);
    case "INTERACTION_CREATE":
      return await receiveInteraction(bot, data as Interaction, signal);
  }
}

async function storeMessages({ receive }: Run, said: readonly IncomingMessage[]): Promise<void> {
  for (const incoming of said) await storeOrDrop("Discord", receive, incoming);
}

async function receiveMessage(bot: Bot, message: Message, signal: AbortSignal): Promise<void> {
  const { receive, channels } = bot;
  const where = message.guild_id === undefined
    ? { chat: message.channel_id, thread: "", isDirect: true }
    : await channels.find(message.channel_id, signal);
  const incoming = where === null
    ? null
    : parseOrDrop("Discord", () => parseMessage(message, where, channels.me));
  if (incoming !== null) await storeOrDrop("Discord", receive, incoming);
}

async function receiveInteraction(bot: Bot, interaction: Interaction, signal: AbortSignal): Promise<void> {
  const { client, receive, channels } = bot;
  const where = await channels.find(interaction.channel_id, signal);
  const incoming = where === null ? null : parseOrDrop("Discord", () => parseInteraction(interaction, where));
  if (incoming === null) return;
  const received = await storeOrDrop("Discord", receive, incoming);
  const { id, token } = interaction;
  const answer = formatCommand(interaction) === "" ? answerPress : answerCommand;
  showOutcome("Discord", () => {
    const body = answer(interaction, received?.outcome);
    return client.call("POST", `/interactions/${id}/${token}/callback`, { body, isOpen: true });
  });
}

function answerPress(pressed: Interaction, outcome: Outcome): object {
  const choice = formatChoice(outcome, findLabel(pressed));
  if (choice === null) return formatPrivate(MAY_NOT_ANSWER);
  const content = `${truncate(pressed.message?.content ?? "", ASKED_CHARACTERS)}\n\n${choice}`;
  return { type: CHANGE, data: { content, allowed_mentions: { parse: [] }, components: [] } };
}

/** Confirms that the service has the command. Its result is a message in the chat. */
function answerCommand(given: Interaction, outcome: Outcome): object {
  return formatPrivate(
    isAnswered(outcome) || outcome === "over"
      ? `> ${truncate(formatCommand(given), ASKED_CHARACTERS)}`
      : "You can't use this command here.",
  );
}

function formatPrivate(content: string): object {
  return { type: ANSWER, data: { content, allowed_mentions: { parse: [] }, flags: ALONE } };
}
