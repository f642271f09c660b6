/** What people can say to the service itself in a chat of a platform, with what it does (contract 10.7). */
export const CHAT_COMMANDS = {
  help: "what you can say here",
  workers: "who works here",
  status: "what is going on in this conversation",
  stop: "end what is being worked on for this conversation",
  new: "let every worker forget this conversation; nothing is ended",
  answer: "answer the open question: /answer <text>",
} as const;

/** A command that is carried out at once; an answer is read with its question. */
export type ChatCommand = Exclude<keyof typeof CHAT_COMMANDS, "answer">;

/** The command that a text is, as `/stop` or `!stop`; null for an unknown one, which is text like any other (contract 10.7). */
export function commandOf(text: string): ChatCommand | null {
  const [, name = ""] = /^[/!]([a-z]+)(?=\s|$)/.exec(text.trim()) ?? [];
  return Object.hasOwn(CHAT_COMMANDS, name) && name !== "answer" ? name as ChatCommand : null;
}

/** What /help answers. */
export function helpText(worker: string): string {
  const lines = Object.entries(CHAT_COMMANDS).map(([name, about]) => `/${name}: ${about}`);
  const who = worker === "" ? "a worker who fits" : worker;
  return [
    `Write what is to be done: it goes to ${who}, or to the one whom you name, such as @name.`,
    "",
    ...lines,
    "",
    "The same with ! in front, where the chat keeps / for itself.",
  ].join("\n");
}
