import type { Choice } from "../domain/call/choice.ts";
import type { Media } from "../domain/chat/message.ts";
import type { PlatformState } from "../domain/chat/platform.ts";

/** A file that came with a message and is still on the platform. */
export interface RemoteFile {
  /** What the platform needs to fetch it; stored. */
  ref: string;
  name: string;
  /** As the platform says; null when it does not. */
  size: number | null;
}

/** What somebody said on a platform. */
export interface Incoming {
  chat: string;
  /** "" outside of threads. */
  thread: string;
  /** Unique in its chat; a repeated one changes nothing (contract 10). */
  id: string;
  sender: { id: string; name: string };
  text: string;
  files: RemoteFile[];
  /** A chat with this person alone. */
  isDirect: boolean;
  /** In a group: it was said to us, and the mention of us is taken off the text. */
  isMentioned: boolean;
  /** What the platform calls the message that this replies to; "" for none. */
  repliesTo: string;
  /** The value of a button that was pressed; "" for what was said. */
  choice: string;
  /** From a program that proved who it is: no mentions, commands or answers (contract 10). */
  isData: boolean;
}

/** What became of it. `over`: stored as failed, because too many wait; `late`: a button of a question that is not open any more. */
export interface Received {
  outcome: "queued" | "repeated" | "over" | "answered" | "ignored" | "late";
  /** The stored message; "" when nothing was stored. */
  message_id: string;
}

/** Stores what came in. It resolves after the commit, and only then may a platform acknowledge (contract 10). */
export type Receive = (incoming: Incoming) => Promise<Received>;

/** The message that was heard last in a conversation. */
export interface Heard {
  chat: string;
  thread: string;
  id: string;
}

/**
 * Up to which message somebody had listened when a gap began whose history is not read yet; "" for none. What is said now is stored
 * beside that, and without this a stop would hide the gap behind it.
 */
export interface Gap {
  find(): Promise<string>;
  /** Resolves when it is stored. */
  save(heardUpTo: string): Promise<void>;
}

/** A part of a reply as it is stored and sent: text in Markdown, or a file. */
export interface Part {
  text: string;
  media: Media | null;
  /** The text is sent as a file of this name. */
  asFile?: string;
}

/** A part that is to be sent. */
export interface Delivery {
  /** The same in every try: the key against doubles, where the platform takes one. */
  key: string;
  chat: string;
  thread: string;
  /** What the platform calls the message that is answered; "" for none. */
  answers: string;
  part: Part;
  /** Buttons for the options of a question; none for any other message. */
  choices: readonly Choice[];
}

/**
 * Why a part was not sent: `unreachable` holds the platform, `limited` the chat or the platform, `refused` is for good, `unanswered`
 * may have arrived (contract 10).
 */
export class DeliveryError extends Error {
  readonly why: "unreachable" | "limited" | "refused" | "unanswered";
  readonly scope: "platform" | "chat";
  /** As the platform said; null when it did not. */
  readonly retryAfterMs: number | null;

  constructor(
    why: DeliveryError["why"],
    message: string,
    { scope = "platform", retryAfterMs = null }: Partial<Pick<DeliveryError, "scope" | "retryAfterMs">> = {},
  ) {
    super(message);
    this.name = "DeliveryError";
    this.why = why;
    this.scope = scope;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A file whose name is known only when it is fetched. */
export interface NamedBytes {
  name: string;
  bytes: ReadableStream<Uint8Array>;
}

/** How the connection to a platform is. */
export interface Health {
  state: PlatformState;
  /** Since when, Unix ms. */
  since: number;
  /** When something last came from it; null before that. */
  last_event_at: number | null;
  error: string;
}

/** What is shown while a run works: a sign that somebody types, and one message that is edited in place. */
export interface Progress {
  chat: string;
  thread: string;
  /** What the platform calls the message that is worked on; "" for none. */
  answers: string;
  /** The message that is edited; "" for a new one. */
  sentAs: string;
  /** null: only the sign; "": take the message away. */
  text: string | null;
}

/** A chat system. One folder each; `local` is one of them (contract 10). */
export interface Platform {
  readonly name: string;
  readonly kind: string;
  /**
   * Connects in the background, and again whenever it has to. Never throws. `lastHeard` says what was heard last in each of the latest
   * conversations: a history is read from there on after a gap (contract 10.1). `gap` is for those who store some of it before they have read all.
   */
  start(receive: Receive, lastHeard: () => Promise<Heard[]>, gap?: Gap): void;
  stop(): Promise<void>;
  /** A reply as the parts that are sent one after the other: formatted, and cut where it is too long. */
  cut(content: string, media: Media | null): Part[];
  /** Sends a part; answers what the platform calls it. Throws DeliveryError. */
  deliver(delivery: Delivery): Promise<string>;
  /** Shows that somebody works on it, where the platform can; answers the message that was made or edited. Throws DeliveryError. */
  progress?(progress: Progress): Promise<string>;
  /** Whether files can be sent there. */
  readonly takesFiles: boolean;
  /** The bytes of a file that came with a message, with its name where that comes with them. Throws DeliveryError. */
  fetch?(ref: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | NamedBytes>;
  /** Asks the platform whether the connection and its key are good. Throws an Error that says what is wrong. */
  test(): Promise<string>;
  health(): Health;
}
