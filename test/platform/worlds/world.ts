/** Abilities of a platform and its fake. A journey runs only where the platform has all that it needs. */
export type Ability =
  | "threads"
  | "groups"
  | "files in"
  /** A file is a separate message. */
  | "files alone"
  | "files out"
  /** The platform has no typing sign, and a message of progress stays with a last text. */
  | "no signs"
  /** A bot without a connection never gets a message. */
  | "lost meanwhile"
  | "buttons"
  | "replies"
  | "commands"
  | "pairing"
  | "progress"
  | "limits"
  /** The platform refuses an invalid key. */
  | "keys"
  /** The platform checks the key of each request. */
  | "keys at work"
  | "edits"
  | "answers";

/** A message of the bot. */
export interface SentMessage {
  id: string;
  chat: string;
  thread: string;
  text: string;
  /** Id of the answered message, or "". */
  answers: string;
  buttons: string[];
  deleted: boolean;
}

export interface MessageOptions {
  chat?: string;
  thread?: string;
  from?: string;
  isGroup?: boolean;
  isMention?: boolean;
  isBot?: boolean;
  /** Edits an earlier message. */
  isEdit?: boolean;
  repliesTo?: string;
  /** Id of the event. A repeated id repeats the event. */
  id?: string;
  file?: { name: string; bytes: Uint8Array<ArrayBuffer> };
}

/** A platform with its fake. */
export interface World extends AsyncDisposable {
  readonly kind: string;
  /** Entry in the configuration. */
  readonly config: Record<string, unknown>;
  readonly can: ReadonlySet<Ability>;
  /** Default person, and so the default direct chat. */
  readonly person: string;
  /** Id of the default direct chat. */
  readonly direct: string;
  /** Number of copies after a send whose answer is lost. */
  readonly copiesOfLost: number;
  /** Sends a message of a person. Returns its id. */
  say(text: string, options?: MessageOptions): Promise<string>;
  sent(): SentMessage[];
  uploads(): { name: string; text: string }[];
  /** Number of typing signs. */
  signs(): number;
  press(message: SentMessage, label: string, from?: string): void;
  /** Accepts the next message and loses the answer. */
  loseAnswer(): void;
  /** Switches a rate limit of the chat. */
  limit(chat: string, isOn: boolean): void;
  /** Makes the key invalid, or valid again. */
  revoke(isOn: boolean): void;
  /** Error after an invalid key. */
  readonly refusal: RegExp;
  /** Requests that the real platform would refuse. */
  faults(): string[];
}
