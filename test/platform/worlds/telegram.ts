import { FakeTelegram } from "../fakes/telegram.ts";
import { ChatWorld, THREADED } from "./chat.ts";
import type { Ability, MessageOptions, SentMessage } from "./world.ts";

export class TelegramWorld extends ChatWorld<FakeTelegram> {
  readonly kind = "telegram";
  readonly can = new Set<Ability>([...THREADED, "answers"]);
  readonly refusal = /Unauthorized/;

  constructor() {
    super(new FakeTelegram());
    this.fake.retryAfter = 1;
  }

  get config() {
    return { kind: "telegram", token: this.fake.token, base_url: this.fake.url };
  }

  say(text: string, options: MessageOptions = {}): Promise<string> {
    const { chat, from = this.person, isGroup = false, isMention = false, isBot = false } = options;
    const id = Number(options.id ?? this.createNumber());
    const more: Record<string, unknown> = {
      ...(options.thread ? { is_topic_message: true, message_thread_id: Number(options.thread) } : {}),
      ...(options.repliesTo
        ? { reply_to_message: { message_id: Number(options.repliesTo), from: { id: 99, is_bot: true } } }
        : {}),
    };
    if (options.file !== undefined) {
      const file_id = `f${id}`;
      this.fake.files.set(file_id, options.file.bytes);
      more.document = { file_id, file_name: options.file.name, file_size: options.file.bytes.length };
      more.caption = text;
      more.text = undefined;
    }
    this.fake.say(isMention ? `@svc_bot ${text}` : text, {
      chat: Number(chat ?? (isGroup ? "-5" : from)),
      from: Number(from),
      type: isGroup ? "supergroup" : "private",
      id,
      bot: isBot,
      kind: options.isEdit === true ? "edited_message" : "message",
      more,
    });
    return Promise.resolve(String(id));
  }

  sent(): SentMessage[] {
    return this.fake.sent.map((one) => ({
      id: String(one.message_id),
      chat: String(one.chat_id),
      thread: String(one.message_thread_id ?? ""),
      text: one.text ?? `[file ${one.document}]`,
      answers: String(one.reply_parameters?.message_id ?? ""),
      buttons: (one.reply_markup?.inline_keyboard ?? []).flat().map(({ text }: { text: string }) => text),
      deleted: this.fake.deleted.includes(one.message_id),
    }));
  }

  signs(): number {
    return this.fake.typing.length;
  }

  press({ id, chat }: SentMessage, label: string, from = this.person): void {
    const message = this.fake.sent.find(({ message_id }) => String(message_id) === id);
    const type = chat.startsWith("-") ? "supergroup" : "private";
    this.fake.press(message, label, { from: Number(from), chat: Number(chat), type });
  }
}
