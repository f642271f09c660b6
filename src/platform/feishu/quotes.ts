import { LRUCache } from "lru-cache";
import type { IncomingMessage } from "../platform.ts";
import { addExcerpts, createContent, joinContents, type MessageContent, readQuoted } from "../quotes.ts";
import type { FeishuClient } from "./client.ts";
import { type Mention, readContent } from "./content.ts";
import type { Message } from "./message.ts";

/** A message that the service requested. */
interface Item {
  message_id: string;
  /** The forwarded conversation of the message. */
  upper_message_id?: string;
  msg_type: string;
  body?: { content?: string };
  sender?: { id?: string; sender_type?: string };
  mentions?: Mention[];
  deleted?: boolean;
}

// Threads whose start their conversation already has, as far as this process knows.
const KNOWN_MAX = 1_000;
const CONVERSATION = "merge_forward";
type Kind = "quoted" | "forwarded";

/** Adds the message that a message replies to, and the messages of a forwarded conversation, as excerpts. */
export class Quotes {
  readonly #client: FeishuClient;
  readonly #appId: string;
  readonly #known = new LRUCache<string, true>({ max: KNOWN_MAX });

  constructor(client: FeishuClient, appId: string) {
    this.#client = client;
    this.#appId = appId;
  }

  /** Remembers that the conversation of this message's thread now has the start of the thread. */
  remember({ chat, thread, isDirect, isMentioned }: IncomingMessage): void {
    if (thread !== "" && (isDirect || isMentioned)) this.#known.set(`${chat} ${thread}`, true);
  }

  /** Returns the message with its excerpts. */
  async complete(incoming: IncomingMessage, message: Message): Promise<IncomingMessage> {
    const { parent_id = "", root_id = "", message_id, message_type } = message;
    const { chat, thread, isDirect, isMentioned } = incoming;
    // Every message of a thread replies to the start of the thread.
    const isKnown = parent_id === root_id && this.#known.has(`${chat} ${thread}`);
    const hasQuote = parent_id !== "" && (isDirect || isMentioned) && !isKnown;
    const [forwarded, quoted] = await Promise.all([
      message_type === CONVERSATION ? this.#read(message_id, "forwarded") : null,
      hasQuote ? this.#read(parent_id, "quoted") : null,
    ]);
    // So far, the message only names a forwarded conversation as unreadable. The conversation itself follows.
    const complete = forwarded === null ? incoming : addExcerpts({ ...incoming, unreadable: [] }, forwarded);
    if (!hasQuote) return complete;
    return addExcerpts(complete, quoted ?? createContent({ unreadable: ["the quoted message"] }));
  }

  async #read(id: string, kind: Kind): Promise<MessageContent | null> {
    return await readQuoted("Feishu", async (signal) => {
      const path = `/im/v1/messages/${encodeURIComponent(id)}`;
      const { items = [] } = await this.#client.call<{ items?: Item[] }>("GET", path, { signal });
      const [root] = items;
      if (root === undefined || isOwn(root, this.#appId)) return createContent();
      const parents = new Set(items.map(({ upper_message_id }) => upper_message_id));
      // The list also has the messages of the forwarded conversation.
      const said = items.filter(({ message_id, msg_type }) =>
        msg_type !== CONVERSATION || !parents.has(message_id)
      );
      return joinContents(said.map((one) => readItem(one, root, kind)));
    });
  }
}

function isOwn({ sender }: Item, appId: string): boolean {
  return sender?.sender_type === "app" && sender.id === appId;
}

function readItem({ message_id, msg_type, body, sender, mentions, deleted }: Item, root: Item, kind: Kind) {
  if (deleted === true) return createContent({ unreadable: ["a deleted message"] });
  // Feishu returns a file of a forwarded conversation for only one of the two messages.
  const sources = [...new Set([message_id, root.message_id])];
  const { text, ...content } = readContent({
    sources,
    type: msg_type,
    content: body?.content ?? "",
    mentions,
  });
  return { text: "", ...content, excerpts: [{ kind, author: String(sender?.id ?? ""), text }] };
}
