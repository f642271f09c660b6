// Message: received -> bee_processed, when it is a chat command.
import { type ChatCommand, parseChatCommand } from "../../domain/chat/chat_command.ts";
import { findAnswerer } from "../../domain/work/question.ts";
import type { Database } from "../../store/db/database.ts";
import type { WaitingMessage } from "../../store/chat/inbound.ts";
import { findMessageText } from "../../store/chat/inbound_part.ts";

/** Executes a chat command. `boot` passes it in, because commands need layers above the pipeline. */
export type CommandExecutor = (message: WaitingMessage, command: ChatCommand, rest: string) => Promise<void>;

/** Executes chat commands and returns the other messages. Messages of programs and runs are never commands (contract 10.7). */
export async function takeCommands(
  db: Database,
  received: readonly WaitingMessage[],
  execute: CommandExecutor,
): Promise<WaitingMessage[]> {
  const rest: WaitingMessage[] = [];
  for (const message of received) {
    const { id, command, has_file } = message;
    const mayBeCommand = command === 1 && has_file === 0 && findAnswerer(message) !== null;
    const text = mayBeCommand ? await findMessageText(db, id) : null;
    const typed = text === null || text.media !== "null" ? null : parseChatCommand(text.content);
    if (typed === null) rest.push(message);
    else await execute(message, typed.name, typed.rest);
  }
  return rest;
}
