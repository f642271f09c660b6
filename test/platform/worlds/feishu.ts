import { FakeFeishu } from "../fakes/feishu.ts";
import { ChatWorld, THREADED } from "./chat.ts";
import type { Ability, MessageOptions, SentMessage } from "./world.ts";

/** Feishu and its fake: people are <n>, direct chats oc_p<n>, and a file is a separate message. */
export class FeishuWorld extends ChatWorld<FakeFeishu> {
  readonly kind = "feishu";
  override readonly copiesOfLost = 1;
  readonly can = new Set<Ability>([...THREADED, "files alone", "answers"]);
  readonly refusal = /10014: app secret invalid/;
  /** Number of frames of an event. */
  pieces = 1;

  constructor() {
    super(new FakeFeishu());
  }

  get config() {
    const { appId: app_id, secret: app_secret, url: base_url } = this.fake;
    return { kind: "feishu", app_id, app_secret, base_url };
  }

  protected override chatOf(person: string): string {
    return `oc_p${person}`;
  }

  say(text: string, options: MessageOptions & { isGone?: boolean } = {}): Promise<string> {
    const { isMention = false, isEdit = false, file, isGone = false } = options;
    if (file !== undefined) {
      const file_key = `file_${this.createNumber()}`;
      if (!isGone) this.fake.files.set(file_key, file.bytes);
      this.#message("file", { file_key, file_name: file.name }, { ...options, isMention: false });
    }
    const type = isEdit ? "im.message.updated_v1" : "im.message.receive_v1";
    return Promise.resolve(
      this.#message("text", { text: isMention ? `@_user_1 ${text}` : text }, options, type),
    );
  }

  #message(
    message_type: string,
    content: object,
    options: MessageOptions,
    event = "im.message.receive_v1",
  ): string {
    const { from = this.person, isGroup = false, isMention = false, isBot = false } = options;
    const { thread, repliesTo } = options;
    const chat = isGroup ? options.chat ?? "oc_group" : this.chatOf(from);
    const message_id = options.id ?? `om_${this.createNumber()}`;
    const mention = { key: "@_user_1", id: { open_id: this.fake.bot }, name: "svc" };
    this.fake.said.set(message_id, { chat, thread: thread ?? "" });
    if (thread !== undefined) this.fake.said.set(thread, { chat, thread });
    const message = {
      message_id,
      ...(thread === undefined ? {} : { thread_id: `omt_${thread}`, root_id: thread }),
      ...(repliesTo === undefined ? {} : { parent_id: repliesTo, root_id: repliesTo }),
      create_time: "1",
      chat_id: chat,
      chat_type: isGroup ? "group" : "p2p",
      message_type,
      content: JSON.stringify(content),
      ...(isMention ? { mentions: [mention] } : {}),
    };
    const sender_type = isBot ? "app" : "user";
    const sender = { sender_id: { open_id: from, union_id: "on" }, sender_type, tenant_key: "t" };
    this.fake.event(event, { sender, message }, { pieces: this.pieces });
    return message_id;
  }

  sent(): SentMessage[] {
    return this.fake.sent.map(({ message_id, chat, thread, text, answers, buttons, deleted }) => ({
      id: message_id,
      // Reports a direct chat as its person, as the other worlds do.
      chat: chat.replace(/^oc_p/, ""),
      thread,
      text,
      answers,
      buttons: buttons.map((button: { text: { content: string } }) => button.text.content),
      deleted,
    }));
  }

  signs(): number {
    return this.fake.reactions.length;
  }

  press({ id }: SentMessage, label: string, from = this.person): void {
    const message = this.fake.sent.find(({ message_id }) => message_id === id);
    const all = [...message.buttons, ...message.old ?? []];
    const { behaviors: [{ value }] } = all.find(({ text }) => text.content === label);
    this.fake.event("card.action.trigger", {
      operator: { open_id: from, tenant_key: "t" },
      token: `c-${this.createNumber()}`,
      action: { tag: "button", value },
      host: "im_message",
      context: { open_message_id: id, open_chat_id: message.chat },
    });
  }
}
