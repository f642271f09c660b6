import type { Media } from "./message.ts";

/** Everything a run is told, beside the instruction itself. */
export interface RunContext {
  worker: {
    id: string;
    name: string;
    description: string;
    memory: string;
    constraints: string;
    work_dir: string;
  };
  task: { id: string; type: string; attempt: number };
  message: { id: string; session_key: string; attachments: Media[] };
  memory: { global: Record<string, string>; session: Record<string, string> };
  /** The recent conversation, oldest first. */
  conversation: { role: "user" | "bee"; content: string; ts: number }[];
}

/** Most messages of the conversation that a run is given, and how much of each. */
export const CONVERSATION_MAX_MESSAGES = 20;

/** The context as JSON for the file SVC_CONTEXT_FILE of a `command` engine (contract 7). */
export function contextFile(context: RunContext, instruction: string): string {
  return JSON.stringify({ ...context, task: { ...context.task, instruction } }, null, 2) + "\n";
}
