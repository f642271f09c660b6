import type { Ability, Sent, Told, World } from "./world.ts";

/** What every fake of a chat platform has. */
interface ChatFake extends AsyncDisposable {
  readonly uploads: { name: string; text: string }[];
  /** How the next sends are answered. */
  readonly modes: { push(mode: "lost"): unknown };
  readonly limited: Set<string>;
  readonly faults: string[];
}

/** What most chat platforms can. */
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

/** A platform on which people write to a bot, with its fake. */
export abstract class ChatWorld<Fake extends ChatFake> implements World {
  abstract readonly kind: string;
  abstract readonly can: ReadonlySet<Ability>;
  abstract readonly config: Record<string, unknown>;
  readonly person = "7";
  /** Two, unless it has a key against doubles. */
  readonly copiesOfLost: number = 2;
  readonly fake: Fake;

  constructor(fake: Fake) {
    this.fake = fake;
  }

  abstract say(text: string, told?: Told): Promise<string>;
  abstract sent(): Sent[];
  abstract signs(): number;
  abstract press(message: Sent, label: string, from?: string): void;

  /** What the platform calls the direct chat with somebody. */
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
