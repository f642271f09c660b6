/** What a platform and its fake can show; a journey that needs something else is not run there. */
export type Ability =
  | "threads"
  | "groups"
  | "files in"
  /** A file comes in a message of its own. */
  | "files alone"
  | "files out"
  /** There is no sign that somebody works, and a message of progress stays and says that it is done. */
  | "no signs"
  /** What is said while nobody listens never comes. */
  | "lost meanwhile"
  | "buttons"
  | "replies"
  | "commands"
  | "pairing"
  | "progress"
  | "limits"
  | "edits"
  | "answers";

/** A message of ours, as the platform has it. */
export interface Sent {
  id: string;
  chat: string;
  thread: string;
  text: string;
  /** The message that it answers; "" for none. */
  answers: string;
  buttons: string[];
  deleted: boolean;
}

/** How somebody says something. */
export interface Told {
  chat?: string;
  thread?: string;
  from?: string;
  isGroup?: boolean;
  isMention?: boolean;
  isBot?: boolean;
  /** An edit of an earlier message. */
  isEdit?: boolean;
  repliesTo?: string;
  /** The same id again is the same event again. */
  id?: string;
  file?: { name: string; bytes: Uint8Array<ArrayBuffer> };
}

/** A platform with its fake, as journeys use it. */
export interface World extends AsyncDisposable {
  readonly kind: string;
  /** Its entry in the configuration. */
  readonly config: Record<string, unknown>;
  readonly can: ReadonlySet<Ability>;
  /** The person, and so the direct chat, that are used unless a journey says otherwise. */
  readonly person: string;
  /** What the platform calls the direct chat with them. */
  readonly direct: string;
  /** How often a send whose answer is lost is there in the end. */
  readonly copiesOfLost: number;
  /** Somebody says something; answers the message's id. */
  say(text: string, told?: Told): Promise<string>;
  sent(): Sent[];
  uploads(): { name: string; text: string }[];
  /** How many signs that somebody types there were. */
  signs(): number;
  press(message: Sent, label: string, from?: string): void;
  /** The next message is taken, and its answer is lost. */
  loseAnswer(): void;
  /** The chat takes nothing for now, and says so. */
  limit(chat: string, isOn: boolean): void;
  /** What the service did that the platform would not take. */
  faults(): string[];
}
