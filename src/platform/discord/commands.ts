import { logger } from "../../base/log.ts";
import { CHAT_COMMANDS } from "../../domain/chat/chat_command.ts";
import type { DiscordClient } from "./client.ts";

const log = logger("discord");
/** Discord's own numbers: a command that is typed, and an option that is text. */
const TYPED = 1;
const TEXT = 3;

/** A command as Discord offers it when somebody types `/`. */
interface Command {
  name: string;
  description: string;
  type: number;
  options: Option[];
}

interface Option {
  type: number;
  name: string;
  description: string;
  required: boolean;
}

/**
 * Has Discord offer the commands of chats, which keeps `/` for commands that it knows (contract 10.7). What it offers already stays, also
 * what others made for the same bot. In the background: without them `!` does the same.
 */
export async function offerCommands(
  client: DiscordClient,
  application: string,
  signal: AbortSignal,
): Promise<void> {
  const path = `/applications/${encodeURIComponent(application)}/commands`;
  try {
    const offered = await client.call<Partial<Command>[]>("GET", path, { signal });
    const known = new Set(offered.map(keyOf));
    for (const command of COMMANDS.filter((one) => !known.has(keyOf(one)))) {
      await client.call("POST", path, { body: command, signal });
    }
  } catch (error) {
    if (!signal.aborted) log.warning("Discord does not offer the commands: {error}", { error });
  }
}

const COMMANDS: Command[] = Object.entries(CHAT_COMMANDS).map(([name, description]) => ({
  name,
  description,
  type: TYPED,
  options: name === "answer" ? [{ type: TEXT, name: "text", description: "the answer", required: true }] : [],
}));

// Discord adds fields of its own, and leaves out what is empty or false.
function keyOf({ name, description, type = TYPED, options = [] }: Partial<Command>): string {
  const shown = options.map((one) => [one.type, one.name, one.description, one.required === true]);
  return JSON.stringify([name, description, type, shown]);
}
