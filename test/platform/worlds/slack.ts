import { FakeSlack } from "../fakes/slack.ts";
import { ChatWorld, THREADED } from "./chat.ts";
import type { Ability, MessageOptions, SentMessage } from "./world.ts";

/** Slack and its fake: people are U<n>, direct chats D<n>, channels C<n>. */
export class SlackWorld extends ChatWorld<FakeSlack> {
  readonly kind = "slack";
  readonly can = new Set<Ability>(THREADED);
  readonly refusal = /token_revoked/;

  constructor() {
    super(new FakeSlack());
  }

  get config() {
    const { appToken: app_token, botToken: bot_token, url } = this.fake;
    return { kind: "slack", app_token, bot_token, base_url: `${url}/api/` };
  }

  protected override chatOf(person: string): string {
    return `D${person}`;
  }

  say(text: string, options: MessageOptions = {}): Promise<string> {
    const { chat, from = this.person, isGroup = false, isMention = false, isBot = false } = options;
    const ts = options.id ?? `1600000000.${String(this.createNumber()).padStart(6, "0")}`;
    const said = `${isMention ? `<@${this.fake.bot}> ` : ""}${text}`;
    const event: Record<string, unknown> = {
      type: "message",
      channel: chat ?? (isGroup ? "-5" : this.chatOf(from)),
      channel_type: isGroup ? "channel" : "im",
      user: from,
      text: said.replaceAll("&", "&amp;").replaceAll(/<(?!@)/g, "&lt;"),
      ts,
      ...(isBot ? { bot_id: "B1" } : {}),
      ...(options.thread ? { thread_ts: options.thread } : {}),
      ...(options.repliesTo ? { thread_ts: options.repliesTo, parent_user_id: this.fake.bot } : {}),
    };
    if (options.isEdit === true) {
      this.fake.event({
        type: "message",
        subtype: "message_changed",
        channel: event.channel,
        message: event,
      });
      return Promise.resolve(ts);
    }
    if (options.file !== undefined) {
      const id = `F${ts.replace(".", "")}`;
      this.fake.files.set(id, options.file.bytes);
      const url_private_download = `${this.fake.url}/files/${id}`;
      event.subtype = "file_share";
      event.files = [{ id, name: options.file.name, size: options.file.bytes.length, url_private_download }];
    }
    this.fake.event(event);
    // Slack sends a mention of the bot twice.
    if (isMention && !isBot) this.fake.event({ ...event, type: "app_mention" });
    return Promise.resolve(ts);
  }

  sent(): SentMessage[] {
    return this.fake.sent.map(({ ts, channel, thread_ts, text, blocks, deleted }) => ({
      id: ts,
      chat: channel.replace(/^D/, ""),
      thread: thread_ts,
      text,
      answers: "",
      buttons: blocks.flatMap((block: { elements?: { text: { text: string } }[] }) =>
        (block.elements ?? []).map((element) => element.text.text)
      ),
      deleted,
    }));
  }

  signs(): number {
    return this.fake.reactions.length;
  }

  press({ id }: SentMessage, label: string, from = this.person): void {
    const message = this.fake.sent.find(({ ts }) => ts === id);
    const elements = [...message.blocks, ...message.old ?? []].flatMap((block) => block.elements ?? []);
    const button = elements.find(({ text }) => text.text === label);
    const { channel, ts, thread_ts, text } = message;
    this.fake.push({
      type: "interactive",
      payload: {
        type: "block_actions",
        user: { id: from, name: `user${from}` },
        container: { type: "message", message_ts: ts, channel_id: channel },
        message: { text, ts, ...(thread_ts === "" ? {} : { thread_ts }) },
        actions: [{ ...button, action_ts: `16.${this.createNumber()}` }],
      },
    });
  }
}
