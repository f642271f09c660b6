import type { Ability, MessageOptions, SentMessage, World } from "./world.ts";

/** Interface of the fakes of chat platforms. */
interface ChatFake extends AsyncDisposable {
  readonly uploads: { name: string; text: string }[];
  readonly modes: { push(mode: "lost"): unknown };
  readonly limited: Set<string>;
  readonly faults: string[];
}

/** Abilities of most chat platforms. */
export const CHAT: readonly Ability[] = [
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
];

/** A chat platform with its fake. */
export abstract class ChatWorld<Fake extends ChatFake> implements World {
  abstract readonly kind: string;
  abstract readonly can: ReadonlySet<Ability>;
  abstract readonly config: Record<string, unknown>;
  readonly person = "7";
  /** Two, unless the platform ignores a second message with the same key. */
  readonly copiesOfLost: number = 2;
  readonly fake: Fake;

  constructor(fake: Fake) {
    this.fake = fake;
  }

  abstract say(text: string, told?: MessageOptions): Promise<string>;
  abstract sent(): SentMessage[];
  abstract signs(): number;
  abstract press(message: SentMessage, label: string, from?: string): void;

  /** Returns the id of the direct chat with a person. */
  protected chatOf(person: string): string {
    return person;
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

  faults(): string[] {
    return this.fake.faults;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake[Symbol.asyncDispose]();
  }
}
