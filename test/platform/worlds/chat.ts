import type { FakeServer, Json } from "../fakes/server.ts";
import type { Ability, MessageOptions, SentMessage, World } from "./world.ts";

/** Abilities of all chat platforms. */
export const CHAT: readonly Ability[] = [
  "groups",
  "files in",
  "files out",
  "buttons",
  "commands",
  "pairing",
  "progress",
  "limits",
  "keys",
];

/** Abilities of the chat platforms with threads. */
export const THREADED: readonly Ability[] = [...CHAT, "keys at work", "threads", "replies", "edits"];

/** A chat platform with its fake. */
export abstract class ChatWorld<Fake extends FakeServer<Json>> implements World {
  abstract readonly kind: string;
  abstract readonly can: ReadonlySet<Ability>;
  abstract readonly config: Record<string, unknown>;
  abstract readonly refusal: RegExp;
  readonly person = "7";
  /** Two, unless the platform ignores a second message with the same key. */
  readonly copiesOfLost: number = 2;
  readonly fake: Fake;
  #next = 100;

  constructor(fake: Fake) {
    this.fake = fake;
  }

  abstract say(text: string, options?: MessageOptions): Promise<string>;
  abstract sent(): SentMessage[];
  abstract signs(): number;
  abstract press(message: SentMessage, label: string, from?: string): void;

  /** Returns the id of the direct chat with a person. */
  protected chatOf(person: string): string {
    return person;
  }

  protected createNumber(): number {
    return this.#next++;
  }

  get direct(): string {
    return this.chatOf(this.person);
  }

  uploads() {
    return this.fake.uploads;
  }

  loseAnswer(): void {
    this.fake.modes.push("lost");
  }

  limit(chat: string, isOn: boolean): void {
    if (isOn) this.fake.limited.add(this.chatOf(chat));
    else this.fake.limited.delete(this.chatOf(chat));
  }

  revoke(isOn: boolean): void {
    this.fake.revoked = isOn;
    this.fake.expire();
  }

  faults(): string[] {
    return this.fake.faults;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake[Symbol.asyncDispose]();
  }
}
