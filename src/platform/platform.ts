import type { Choice } from "../domain/call/choice.ts";
import type { Excerpt } from "../domain/chat/excerpt.ts";
import type { Media } from "../domain/chat/message.ts";
import type { ForgeChange } from "../domain/work/forge_branch.ts";
import type { PlatformState } from "../domain/chat/platform.ts";

export type { Excerpt };

/** A file of a message that the service has not fetched yet. */
export interface RemoteFile {
  /** Argument of fetch(). */
  ref: string;
  name: string;
  /** null: unknown. */
  size: number | null;
}

/** A message, or a press of a button, from a platform. */
export interface IncomingMessage {
  chat: string;
  /** Id of the thread, or "" without one. */
  thread: string;
  /** Unique in its chat. A repeated id changes nothing. */
  id: string;
  sender: { id: string; name: string };
  text: string;
  files: RemoteFile[];
  /** Messages that this one quotes or forwards. Their files are in `files`. */
  excerpts: Excerpt[];
  /** Nouns for the content that the service cannot read, such as "a sticker". */
  unreadable: string[];
  /** Id of an album, whose files arrive in several messages. A mention in one of them is valid for all. "" for no album. */
  album?: string;
  isDirect: boolean;
  /** The message mentions the bot, or replies to it. `text` is without the mention. */
  isMentioned: boolean;
  /** The platform's id of the message that this one replies to, or "". */
  repliesTo: string;
  /** Value of the pressed button, or "" for a message. */
  choice: string;
  /** An authenticated program sent the message. The service looks for no mentions, commands and answers in it. */
  isData: boolean;
}

/** Adds the fields that are equal for all presses of a button. */
export function buildPress(
  press: Omit<IncomingMessage, "text" | "files" | "excerpts" | "unreadable" | "isMentioned" | "isData">,
): IncomingMessage {
  return { ...press, text: "", files: [], excerpts: [], unreadable: [], isMentioned: true, isData: false };
}

/** Result of a received message. `over`: stored as failed, since too many messages wait. `late`: the question is closed. */
export interface ReceiveResult {
  outcome: "queued" | "repeated" | "over" | "answered" | "ignored" | "late";
  /** "": not stored. */
  message_id: string;
}

/** Outcome of a press. undefined: the service could not store it. */
export type Outcome = ReceiveResult["outcome"] | undefined;

/** Stores a message. Resolves after the commit. Only then may a platform acknowledge. */
export type Receive = (incoming: IncomingMessage) => Promise<ReceiveResult>;

/** Stores the new id of a chat. Resolves after the commit. */
export type MoveChat = (from: string, to: string) => Promise<void>;

/** Last message of a conversation. */
export interface LastMessage {
  chat: string;
  thread: string;
  id: string;
}

/**
 * Stores the last message before a gap whose history the service has not read yet. The service stores new messages meanwhile, and
 * after a restart they would hide the gap. A mailbox stores its position here.
 */
export interface Gap {
  /** Returns "" without a gap. */
  find(): Promise<string>;
  save(heardUpTo: string): Promise<void>;
}

/** A part of a reply: text in Markdown, or a file. */
export interface Part {
  text: string;
  media: Media | null;
  /** Sends the text as a file of this name. */
  asFile?: string;
}

export interface Delivery {
  /** Equal in every try. Some platforms ignore a second message with the same key. */
  key: string;
  chat: string;
  thread: string;
  /** The platform's id of the message that this one answers, or "". */
  answers: string;
  part: Part;
  /** Options of a question. */
  choices: readonly Choice[];
  /** When the reply was created, Unix ms, if an earlier try may have sent the part. */
  sentBefore?: number;
  /** The last try had no outcome, and no person asked to send the reply again. */
  isUnanswered?: boolean;
}

/**
 * Says why the service could not send a part. `unreachable` stops deliveries to the platform for a while, `limited` those to the
 * chat or the platform. `refused` is permanent. After `unanswered`, the part may have arrived.
 */
export class DeliveryError extends Error {
  readonly why: "unreachable" | "limited" | "refused" | "unanswered";
  readonly scope: "platform" | "chat";
  /** null: the platform named no time. */
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

/** Error that a platform answered. Each kind of platform has a subclass, which knows the meaning of its codes. */
export abstract class PlatformError extends Error {
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.name = new.target.name;
    this.retryAfterMs = retryAfterMs;
  }

  /** The platform refuses the key, so a person must act before another connection helps. */
  abstract get isKeyRefused(): boolean;

  /** Reason why the service could not send a reply. */
  abstract get why(): DeliveryError["why"];

  get scope(): DeliveryError["scope"] {
    return "platform";
  }

  /** Pause before the next connection. null means a pause that grows with every failure. */
  get pauseMs(): number | null {
    return this.retryAfterMs;
  }
}

/** Finds the meaning of a failed request for the reply (contract 10.3). */
export function toDeliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof PlatformError)) return new DeliveryError("refused", String(error));
  const { why, message, scope, retryAfterMs } = error;
  return why === "limited"
    ? new DeliveryError(why, message, { scope, retryAfterMs })
    : new DeliveryError(why, message);
}

/** A file whose name comes with its bytes. */
export interface NamedBytes {
  name: string;
  bytes: ReadableStream<Uint8Array>;
}

export interface Health {
  state: PlatformState;
  /** Unix ms. */
  since: number;
  last_event_at: number | null;
  error: string;
}

/** Progress of a run: a typing sign, or a message that the service edits. */
export interface Progress {
  chat: string;
  thread: string;
  /** The platform's id of the message that the run answers, or "". */
  answers: string;
  /** Id of the message to edit, or "" to send a new one. */
  sentAs: string;
  /** Text to show. null shows only the typing sign, and "" deletes the message. */
  text: string | null;
}

/** A delivery of a forge to `POST /hooks/:name`. */
interface EventDelivery {
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** The body as JSON. */
  json: unknown;
}

interface EventMessage extends Pick<IncomingMessage, "id" | "chat" | "sender" | "text" | "excerpts"> {
  /** The branch that a failed check or a review is about. */
  change: ForgeChange | null;
}

/** Reads events that people and programs cause in a forge (contract 25). */
export interface EventReader {
  /** Checks the signature of a delivery. */
  isSigned(secret: string, delivery: Omit<EventDelivery, "json"> & { now: number }): boolean;
  /** Returns the message for the worker, or why the event is none. Throws DeliveryError while the forge does not respond. */
  read(
    delivery: EventDelivery,
    rules: { secret: string; allow: readonly string[]; worker: string },
  ): Promise<EventMessage | string>;
  /** Says why the secret protects less than it could, or "". */
  findWeakness(secret: string): string;
}

/** A connection to a chat system or program. */
export interface Platform {
  readonly name: string;
  readonly kind: string;
  /**
   * Connects in the background, and reconnects. Never throws. After a gap, the platform reads the history of each conversation that
   * `lastHeard` returns. `gap` is for platforms that store new messages before they have read it all, and `move` for
   * platforms whose chats can get a new id.
   */
  start(receive: Receive, lastHeard: () => Promise<LastMessage[]>, gap?: Gap, move?: MoveChat): void;
  stop(): Promise<void>;
  /** Cuts a reply into parts. */
  cut(content: string, media: Media | null): Part[];
  /** Sends a part. Returns the platform's id. Throws DeliveryError. */
  deliver(delivery: Delivery): Promise<string>;
  /** Shows progress. Returns the id of the new or edited message. Throws DeliveryError. */
  progress?(progress: Progress): Promise<string>;
  readonly takesFiles: boolean;
  /** Opens a file of a message. Throws DeliveryError. */
  fetch?(ref: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | NamedBytes>;
  /** Reads the deliveries of a forge. */
  readonly events?: EventReader;
  /** Checks the connection and the key. Returns a line for people. Throws an Error that names the problem. */
  test(): Promise<string>;
  health(): Health;
}
