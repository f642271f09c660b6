import { createLogger } from "../../base/log.ts";
import { CHAT_COMMANDS } from "../../domain/chat/chat_command.ts";
import type { DiscordClient } from "./client.ts";

const log = createLogger("discord");
/** Discord's types of a command that a person types, and of an option with text. */
const TYPED = 1;
const TEXT = 3;

type Command = (typeof COMMANDS)[number];

/**
 * Registers the chat commands, because Discord sends only registered `/` commands. Keeps other commands of the bot. Only logs an error,
 * because `!` commands work without registration.
 */
export async function registerCommands(
  client: DiscordClient,
  application: string,
  signal: AbortSignal,
): Promise<void> {
  const path = `/applications/${encodeURIComponent(application)}/commands`;
  try {
    const offered = await client.call<Partial<Command>[]>("GET", path, { signal });
    const known = new Set(offered.map(buildKey));
    for (const command of COMMANDS.filter((one) => !known.has(buildKey(one)))) {
      await client.call("POST", path, { body: command, signal });
    }
  } catch (error) {
    if (!signal.aborted) log.warning("Cannot register the chat commands with Discord: {error}", { error });
  }
}

/** The commands with a text, and what it is. */
const TEXTS = { answer: "the answer", steer: "what to tell the agent" } as const;

const COMMANDS = Object.entries(CHAT_COMMANDS).map(([name, description]) => ({
  name,
  description,
  type: TYPED,
  options: Object.hasOwn(TEXTS, name)
    ? [{ type: TEXT, name: "text", description: TEXTS[name as keyof typeof TEXTS], required: true }]
    : [],
}));

// Discord adds its fields, and drops empty and false fields.
function buildKey({ name, description, type = TYPED, options = [] }: Partial<Command>): string {
  const shown = options.map((one) => [one.type, one.name, one.description, one.required === true]);
  return JSON.stringify([name, description, type, shown]);
}
