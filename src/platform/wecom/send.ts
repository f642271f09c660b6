import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import { truncate } from "../message_parts.ts";
import { translateMarkdown } from "../markdown.ts";
import { readPartFile } from "../part_file.ts";
import type { Delivery, Outcome, Progress } from "../platform.ts";
import { formatChoice } from "../receive_guard.ts";
import { type WeComClient, WeComError } from "./client.ts";
import { WECOM_MARKDOWN } from "./format.ts";
import { upload } from "./upload.ts";

// Limits of a card. The service sends a longer question as a message before the card.
const TITLE_CHARACTERS = 26;
const TEXT_CHARACTERS = 112;
const LABEL_CHARACTERS = 30;
const BUTTONS = 6;
const SENT_MAX = 1_000;
/** Last text of a message of progress, which WeCom can't delete. */
const DONE = "✓";

/** Sends the messages of one bot. Its memory of cards and callbacks ends with the process. */
export class Sender {
  readonly #client: WeComClient;
  /** Question of each card, by its task. */
  readonly #cards = new LRUCache<string, { text: string; labels: Map<string, string> }>({ max: SENT_MAX });
  /** Long questions that were sent before their card, by the key of the delivery. */
  readonly #sentQuestions = new LRUCache<string, true>({ max: SENT_MAX });
  /** Callback of each message of a person. A message of progress answers this callback. */
  readonly #callbacks = new LRUCache<string, string>({ max: SENT_MAX });
  /** Callback of each message of progress. */
  readonly #streams = new LRUCache<string, string>({ max: SENT_MAX });

  constructor(client: WeComClient) {
    this.#client = client;
  }

  remember(message: string, callback: string): void {
    this.#callbacks.set(message, callback);
  }

  /** Sends a part. Returns the task of a card, "" for other messages. Throws as the client does. */
  async deliver(delivery: Delivery): Promise<string> {
    const { chat, part, choices } = delivery;
    const file = await readPartFile(part);
    if (file !== null) {
      const media_id = await upload(this.#client, file);
      await this.#send(chat, { msgtype: "file", file: { media_id } });
      return "";
    }
    if (choices.length > 0 && choices.length <= BUTTONS) return await this.#sendCard(delivery);
    // The text of the question also lists its options.
    await this.#sendText(chat, part.text);
    return "";
  }

  /** Creates, edits or ends the message of progress, which answers a callback. Throws as the client does. */
  async showProgress({ answers, sentAs, text }: Progress): Promise<string> {
    // WeCom has no typing sign.
    if (text === null) return sentAs;
    const id = sentAs === "" ? randomUUID() : sentAs;
    const callback = sentAs === "" ? this.#callbacks.get(answers) : this.#streams.get(sentAs);
    if (callback === undefined) return sentAs;
    const stream = { id, finish: text === "", content: text === "" ? DONE : formatText(text) };
    try {
      await this.#client.call("aibot_respond_msg", { msgtype: "stream", stream }, callback);
      this.#streams.set(id, callback);
      return id;
    } catch (error) {
      if (error instanceof WeComError && error.isTooLate) return sentAs;
      throw error;
    }
  }

  /** Replaces the buttons of a card with the answer. WeCom allows it within 5 s after the press. */
  async confirm(callback: string, task: string, key: string, outcome: Outcome) {
    const card = this.#cards.get(task);
    const choice = formatChoice(outcome, card?.labels.get(key) ?? DONE);
    if (choice === null) return;
    await this.#client.call("aibot_respond_update_msg", {
      response_type: "update_template_card",
      template_card: {
        card_type: "text_notice",
        ...buildTitle(card?.text ?? "Question"),
        quote_area: {
          type: 0,
          quote_text: choice.replace(/^> /, ""),
        },
        card_action: { type: 0 },
        task_id: task,
      },
    }, callback);
  }

  async #sendCard({ key, chat, part: { text }, choices }: Delivery): Promise<string> {
    const words = text.length > TEXT_CHARACTERS ? `${truncate(text, TEXT_CHARACTERS - 1)}…` : text;
    // A retry of the card must not repeat the question.
    if (words !== text && !this.#sentQuestions.has(key)) await this.#sendText(chat, text);
    this.#sentQuestions.set(key, true);
    // WeCom refuses a task id that it had before, also in a retry.
    const task_id = randomUUID();
    await this.#send(chat, {
      msgtype: "template_card",
      template_card: {
        card_type: "button_interaction",
        ...buildTitle(words),
        button_list: choices.map(({ value, label }) => ({
          text: truncate(label, LABEL_CHARACTERS),
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

  async #sendText(chat: string, text: string): Promise<void> {
    await this.#send(chat, { msgtype: "markdown", markdown: { content: formatText(text) } });
  }

  async #send(chat: string, body: object): Promise<void> {
    await this.#client.call("aibot_send_msg", { chatid: chat, ...body });
  }
}

function formatText(text: string): string {
  return translateMarkdown(text, WECOM_MARKDOWN);
}

function buildTitle(text: string): object {
  return text.length <= TITLE_CHARACTERS
    ? { main_title: { title: text } }
    : { main_title: { title: "?" }, sub_title_text: text };
}
