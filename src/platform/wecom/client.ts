import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { DeliveryError } from "../platform.ts";
import type { Socket } from "../monitored_socket.ts";

const ANSWER_MS = 15_000;
/** Too many messages, of a chat or in all. */
const TOO_MANY = 45_009;
/** The socket is open, but WeCom does not count it. */
const NOT_SUBSCRIBED = 846_609;
/** What a callback is answered with came too late, or the callback is gone. */
const TOO_LATE = [846_605, 846_608];
const BUSY = -1;

/** A frame as it goes both ways. */
export interface Frame {
  cmd?: string;
  headers?: { req_id?: string };
  body?: unknown;
  errcode?: number;
  errmsg?: string;
}

/** What WeCom answered instead of a result. */
export class WeComError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(`WeCom answered ${code}: ${message}`);
    this.name = "WeComError";
    this.code = code;
  }

  get isTooLate(): boolean {
    return TOO_LATE.includes(this.code);
  }

  /** No further try makes it better before somebody has done something. */
  get isRefusal(): boolean {
    return ![BUSY, TOO_MANY, NOT_SUBSCRIBED].includes(this.code);
  }
}

interface Waiting {
  resolve: (frame: Frame) => void;
  reject: (error: unknown) => void;
}

/** Requests of one bot, over the socket that is there at the moment. */
export class WeComClient {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Waiting>();
  #socket: Socket | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on requests go over this one. */
  attach(socket: Socket): void {
    this.#socket = socket;
  }

  /** There is no socket any more: what was sent over it may have arrived. */
  detach(): void {
    this.#socket = null;
    for (const { reject } of this.#waiting.values()) reject(unanswered());
    this.#waiting.clear();
  }

  /** The answer to a request. Throws WeComError when WeCom does not count the socket any more. */
  answer(frame: Frame): void {
    const id = frame.headers?.req_id ?? "";
    const waiting = this.#waiting.get(id);
    const { errcode = 0, errmsg = "" } = frame;
    const error = errcode === 0 ? null : new WeComError(errcode, errmsg);
    this.#waiting.delete(id);
    if (error === null) waiting?.resolve(frame);
    else waiting?.reject(error);
    if (errcode === NOT_SUBSCRIBED) throw error;
  }

  /** Answers a callback, or with no `callback` asks by itself. Throws WeComError for a refusal, DeliveryError without an answer. */
  async call<T>(cmd: string, body: object | undefined, callback = ""): Promise<T> {
    const socket = this.#socket;
    const id = callback === "" ? `${cmd}_${randomUUID()}` : callback;
    if (socket === null) throw new DeliveryError("unreachable", "WeCom is not connected");
    // WeCom tells answers to one callback apart by their order alone.
    if (this.#waiting.has(id)) throw new DeliveryError("refused", "WeCom has not answered the one before");
    const { promise, resolve, reject } = Promise.withResolvers<Frame>();
    this.#waiting.set(id, { resolve, reject });
    const cancel = this.#clock.after(ANSWER_MS, () => {
      this.#waiting.delete(id);
      reject(unanswered());
    });
    try {
      socket.send(JSON.stringify({ cmd, headers: { req_id: id }, ...(body === undefined ? {} : { body }) }));
      return (await promise).body as T;
    } finally {
      cancel();
      this.#waiting.delete(id);
    }
  }
}

function unanswered(): DeliveryError {
  return new DeliveryError("unanswered", "WeCom did not answer");
}

/** What a failed request means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof WeComError)) return new DeliveryError("refused", String(error));
  const { code, message } = error;
  if (code === TOO_MANY) return new DeliveryError("limited", message, { scope: "chat" });
  return new DeliveryError(error.isRefusal ? "refused" : "unreachable", message);
}
