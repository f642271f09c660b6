// received -> bee_processed: a command of a chat is carried out at once and goes no further
import { type ChatCommand, commandOf } from "../../domain/chat/chat_command.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import type { Database } from "../../store/db/database.ts";
import type { WaitingMessage } from "../../store/chat/inbound.ts";
import { findSaid } from "../../store/chat/inbound_part.ts";

/** Carries out a command; what it needs lies above the pipeline, so `boot` hands it over. */
export type CarryOut = (message: WaitingMessage, command: ChatCommand) => Promise<void>;

/**
 * Takes out of the received messages those that are commands, and returns the others. What a program sends is never one, and the
 * local chat has commands of its own: `svc ctl` (contract 10.7).
 */
export async function takeCommands(
  db: Database,
  received: readonly WaitingMessage[],
  carryOut: CarryOut,
): Promise<WaitingMessage[]> {
  const rest: WaitingMessage[] = [];
  for (const message of received) {
    const { id, platform, is_data, command, has_file } = message;
    const could = command === 1 && platform !== LOCAL_PLATFORM && is_data === 0 && has_file === 0;
    const said = could ? await findSaid(db, id) : null;
    const name = said === null || said.media !== "null" ? null : commandOf(said.content);
    if (name === null) rest.push(message);
    else await carryOut(message, name);
  }
  return rest;
}
