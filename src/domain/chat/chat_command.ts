import { readCommand } from "../call/typed_command.ts";

/** Commands for people in a chat of a platform, with their help texts (contract 10.7). */
export const CHAT_COMMANDS = {
  help: "list the commands",
  workers: "list the workers",
  status: "show the work in this conversation",
  steer: "tell the running agent something: /steer <text>",
  stop: "cancel the work in this conversation",
  new: "make every worker forget this conversation; running work continues",
  answer: "answer the open question: /answer <text>",
} as const;

/** A command that runs immediately. Open questions handle `/answer`. */
export type ChatCommand = Exclude<keyof typeof CHAT_COMMANDS, "answer">;

/** Parses a command and the text after it. Returns null for an unknown command, which is ordinary text (contract 10.7). */
export function parseChatCommand(text: string): { name: ChatCommand; rest: string } | null {
  const { name = "", rest = "" } = readCommand(text) ?? {};
  const isKnown = Object.hasOwn(CHAT_COMMANDS, name) && name !== "answer";
  return isKnown ? { name: name as ChatCommand, rest } : null;
}

export function formatChatHelp(worker: string): string {
  const lines = Object.entries(CHAT_COMMANDS).map(([name, about]) => `/${name}: ${about}`);
  const who = worker === "" ? "a suitable worker" : worker;
  return [
    `Write a task. It goes to ${who}, or to the worker that you mention, such as @name.`,
    "",
    ...lines,
    "",
    "If the chat reserves /, write ! instead.",
  ].join("\n");
}
