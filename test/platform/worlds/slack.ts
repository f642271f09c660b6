import { FakeSlack } from "../fakes/slack.ts";
import type { Ability, Sent, Told, World } from "./world.ts";

/** Slack and its fake: people are U<n>, direct chats D<n>, channels C<n>. */
export class SlackWorld implements World {
  readonly kind = "slack";
  readonly person = "7";
  readonly direct = "D7";
  // It has no key against doubles.
  readonly copiesOfLost = 2;
  readonly can: ReadonlySet<Ability> = new Set<Ability>([
    "threads",
    "groups",
    "files in",
    "files out",
    "buttons",
    "replies",
    "commands",
    "pairing",
    "progress",
    "limits",
    "edits",
  ]);
  readonly fake = new FakeSlack();
  #next = 100;

  get config() {
    const { appToken: app_token, botToken: bot_token, url } = this.fake;
    return { kind: "slack", app_token, bot_token, base_url: `${url}/api/` };
  }

  say(text: string, told: Told = {}): Promise<string> {
    const { chat, from = this.person, isGroup = false, isMention = false, isBot = false } = told;
    const ts = told.id ?? `1600000000.${String(this.#next++).padStart(6, "0")}`;
    const said = `${isMention ? `<@${this.fake.bot}> ` : ""}${text}`;
    const event: Record<string, unknown> = {
      type: "message",
      channel: chat ?? (isGroup ? "-5" : `D${from}`),
      channel_type: isGroup ? "channel" : "im",
      user: from,
      text: said.replaceAll("&", "&amp;").replaceAll(/<(?!@)/g, "&lt;"),
      ts,
      ...(isBot ? { bot_id: "B1" } : {}),
      ...(told.thread ? { thread_ts: told.thread } : {}),
      ...(told.repliesTo ? { thread_ts: told.repliesTo, parent_user_id: this.fake.bot } : {}),
    };
    if (told.isEdit === true) {
      this.fake.event({
        type: "message",
        subtype: "message_changed",
        channel: event.channel,
        message: event,
      });
      return Promise.resolve(ts);
    }
    if (told.file !== undefined) {
      const id = `F${ts.replace(".", "")}`;
      this.fake.files.set(id, told.file.bytes);
      const url_private_download = `${this.fake.url}/files/${id}`;
      event.subtype = "file_share";
      event.files = [{ id, name: told.file.name, size: told.file.bytes.length, url_private_download }];
    }
    this.fake.event(event);
    // What mentions the bot comes twice.
    if (isMention && !isBot) this.fake.event({ ...event, type: "app_mention" });
    return Promise.resolve(ts);
  }

  sent(): Sent[] {
    return this.fake.sent.map(({ ts, channel, thread_ts, text, blocks, deleted }) => ({
      id: ts,
      // The direct chat of a person is a chat of its own.
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

  uploads() {
    return this.fake.uploads;
  }

  signs(): number {
    return this.fake.reactions.length;
  }

  press({ id }: Sent, label: string, from = this.person): void {
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
        actions: [{ ...button, action_ts: `16.${this.#next++}` }],
      },
    });
  }

  loseAnswer(): void {
    this.fake.modes.push("lost");
  }

  limit(chat: string, isOn: boolean): void {
    if (isOn) this.fake.limited.add(`D${chat}`);
    else this.fake.limited.delete(`D${chat}`);
  }

  faults(): string[] {
    return this.fake.faults;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake[Symbol.asyncDispose]();
  }
}
