import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import { beginningOf } from "../message_parts.ts";
import { inDialect } from "../markdown.ts";
import { fileOf } from "../part_file.ts";
import type { Delivery, Progress, Received } from "../platform.ts";
import { deliveryError, type WeComClient, WeComError } from "./client.ts";
import { WECOM_MARKDOWN } from "./format.ts";
import { upload } from "./upload.ts";

// What a card shows of a question; a longer one is a message before it.
const TITLE_CHARACTERS = 26;
const TEXT_CHARACTERS = 112;
const LABEL_CHARACTERS = 30;
const BUTTONS = 6;
const SENT_MAX = 1_000;
/** What a message of progress says in the end: it cannot be taken away. */
const DONE = "✓";

/** What is remembered of what was said and sent, until the next start. */
export class Sender {
  readonly #client: WeComClient;
  /** What was asked on a card, by its task. */
  readonly #cards = new LRUCache<string, { text: string; labels: Map<string, string> }>({ max: SENT_MAX });
  /** Questions that were too long for their card and are said already, by the key of their delivery. */
  readonly #said = new LRUCache<string, true>({ max: SENT_MAX });
  /** The callback of a message of a person: what is said about it while it is worked on goes there. */
  readonly #callbacks = new LRUCache<string, string>({ max: SENT_MAX });
  /** The callback of a message of progress. */
  readonly #streams = new LRUCache<string, string>({ max: SENT_MAX });

  constructor(client: WeComClient) {
    this.#client = client;
  }

  /** A message came with this callback. */
  remember(message: string, callback: string): void {
    this.#callbacks.set(message, callback);
  }

  /** Sends a part; answers the task of its card, else "". Throws DeliveryError. */
  async deliver(delivery: Delivery): Promise<string> {
    const { chat, part, choices } = delivery;
    try {
      const file = await fileOf(part);
      if (file !== null) {
        const media_id = await upload(this.#client, file);
        await this.#send(chat, { msgtype: "file", file: { media_id } });
        return "";
      }
      if (choices.length > 0 && choices.length <= BUTTONS) return await this.#ask(delivery);
      // The text of a question lists its options itself.
      await this.#say(chat, part.text);
      return "";
    } catch (error) {
      throw deliveryError(error);
    }
  }

  /** The message that says what is done: made as the answer to a callback, changed, and ended. Throws DeliveryError. */
  async showProgress({ answers, sentAs, text }: Progress): Promise<string> {
    // There is no sign without a message that stays.
    if (text === null) return sentAs;
    const id = sentAs === "" ? randomUUID() : sentAs;
    const callback = sentAs === "" ? this.#callbacks.get(answers) : this.#streams.get(sentAs);
    if (callback === undefined) return sentAs;
    const stream = { id, finish: text === "", content: text === "" ? DONE : shown(text) };
    try {
      await this.#client.call("aibot_respond_msg", { msgtype: "stream", stream }, callback);
      this.#streams.set(id, callback);
      return id;
    } catch (error) {
      if (error instanceof WeComError && error.isTooLate) return sentAs;
      throw deliveryError(error);
    }
  }

  /** The card of a question shows the answer and has no buttons. WeCom takes it within 5 s after the press. */
  async confirm(callback: string, task: string, key: string, outcome: Received["outcome"] | undefined) {
    const isAnswered = outcome === "queued" || outcome === "repeated";
    if (!isAnswered && outcome !== "late") return;
    const card = this.#cards.get(task);
    await this.#client.call("aibot_respond_update_msg", {
      response_type: "update_template_card",
      template_card: {
        card_type: "text_notice",
        ...wordsOf(card?.text ?? "Question"),
        quote_area: {
          type: 0,
          quote_text: isAnswered ? card?.labels.get(key) ?? DONE : "(not open any more)",
        },
        card_action: { type: 0 },
        task_id: task,
      },
    }, callback);
  }

  async #ask({ key, chat, part: { text }, choices }: Delivery): Promise<string> {
    const words = text.length > TEXT_CHARACTERS ? `${beginningOf(text, TEXT_CHARACTERS - 1)}…` : text;
    // A card that was not taken comes again without what was said before it.
    if (words !== text && !this.#said.has(key)) await this.#say(chat, text);
    this.#said.set(key, true);
    // Never the same one twice, not even when it is sent again: WeCom refuses that.
    const task_id = randomUUID();
    await this.#send(chat, {
      msgtype: "template_card",
      template_card: {
        card_type: "button_interaction",
        ...wordsOf(words),
        button_list: choices.map(({ value, label }) => ({
          text: beginningOf(label, LABEL_CHARACTERS),
          style: 1,
          key: value,
        })),
        task_id,
      },
    });
    const labels = new Map(choices.map(({ value, label }) => [value, label]));
    this.#cards.set(task_id, { text: words, labels });
    return task_id;
  }

  async #say(chat: string, text: string): Promise<void> {
    await this.#send(chat, { msgtype: "markdown", markdown: { content: shown(text) } });
  }

  async #send(chat: string, body: object): Promise<void> {
    await this.#client.call("aibot_send_msg", { chatid: chat, ...body });
  }
}

function shown(text: string): string {
  return inDialect(text, WECOM_MARKDOWN);
}

function wordsOf(text: string): object {
  return text.length <= TITLE_CHARACTERS
    ? { main_title: { title: text } }
    : { main_title: { title: "?" }, sub_title_text: text };
}
