import { LRUCache } from "lru-cache";
import type { IncomingMessage, LastMessage } from "../platform.ts";
import { addExcerpts, createContent, readQuoted } from "../quotes.ts";
import type { SlackClient } from "./client.ts";
import { type Event, findThreadStart, readThreadStart } from "./message.ts";

// Threads whose start their conversation already has, as far as this process knows.
const KNOWN_MAX = 1_000;

/** Adds the start of a thread to the first message in the thread that mentions the bot. */
export class Threads {
  readonly #client: SlackClient;
  readonly #known = new LRUCache<string, true>({ max: KNOWN_MAX });

  constructor(client: SlackClient) {
    this.#client = client;
  }

  /** Remembers that the conversations of these threads already have the starts. */
  remember(conversations: readonly Pick<LastMessage, "chat" | "thread">[]): void {
    for (const { chat, thread } of conversations) this.#known.set(`${chat} ${thread}`, true);
  }

  /** Remembers the thread of a message that is the start or has received it as an excerpt. */
  rememberMessage(message: IncomingMessage): void {
    if (message.id === message.thread || isAddressed(message)) this.remember([message]);
  }

  /** Returns the message with the start of its thread as an excerpt. */
  async complete(incoming: IncomingMessage, event: Event, botId: string): Promise<IncomingMessage> {
    const { chat, thread } = incoming;
    const ts = findThreadStart(event, botId);
    if (ts === "" || !isAddressed(incoming) || this.#known.has(`${chat} ${thread}`)) return incoming;
    const fields = { channel: chat, ts, oldest: ts, latest: ts, inclusive: true, limit: 1 };
    const content = await readQuoted("Slack", async (signal) => {
      const { messages } = await this.#client.call<{ messages?: Event[] }>(
        "conversations.replies",
        fields,
        signal,
      );
      const start = messages?.find((one) => one.ts === ts);
      return start === undefined ? createContent() : readThreadStart(start, botId);
    });
    return addExcerpts(incoming, content ?? createContent({ unreadable: ["the start of the thread"] }));
  }
}

function isAddressed({ isDirect, isMentioned }: IncomingMessage): boolean {
  return isDirect || isMentioned;
}
