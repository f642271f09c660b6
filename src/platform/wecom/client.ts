import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { DeliveryError, PlatformError } from "../platform.ts";
import type { Socket } from "../monitored_socket.ts";

const ANSWER_MS = 15_000;
const LIMITED_PAUSE_MS = 60_000;
/** Code for a rate limit of a chat or of the bot. */
const TOO_MANY = 45_009;
/** Code when the socket is open, but WeCom forgot the subscription. */
const NOT_SUBSCRIBED = 846_609;
/** Codes for an expired callback. */
const TOO_LATE = [846_605, 846_608];
const BUSY = -1;

/** A frame in either direction. */
export interface Frame {
  cmd?: string;
  headers?: { req_id?: string };
  body?: unknown;
  errcode?: number;
  errmsg?: string;
}

export class WeComError extends PlatformError {
  readonly code: number;

  constructor(code: number, message: string) {
    super(`WeCom answered ${code}: ${message}`);
    this.code = code;
  }

  get isTooLate(): boolean {
    return TOO_LATE.includes(this.code);
  }

  get isKeyRefused(): boolean {
    return ![BUSY, TOO_MANY, NOT_SUBSCRIBED].includes(this.code);
  }

  get why(): DeliveryError["why"] {
    if (this.code === TOO_MANY) return "limited";
    return this.isKeyRefused ? "refused" : "unreachable";
  }

  override get scope(): DeliveryError["scope"] {
    return "chat";
  }

  override get pauseMs(): number | null {
    return this.why === "limited" ? LIMITED_PAUSE_MS : null;
  }
}

interface OpenRequest {
  resolve: (frame: Frame) => void;
  reject: (error: unknown) => void;
}

/** Sends the requests of one bot over its current socket. */
export class WeComClient {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, OpenRequest>();
  #socket: Socket | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  attach(socket: Socket): void {
    this.#socket = socket;
  }

  /** Fails the open requests: WeCom may have got them. */
  detach(): void {
    this.#socket = null;
    for (const { reject } of this.#waiting.values()) reject(createUnanswered());
    this.#waiting.clear();
  }

  /** Takes the answer to a request. Throws WeComError when WeCom forgot the subscription. */
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

  /** Sends a request, or the answer to a callback. Throws WeComError for a refusal, DeliveryError without an answer. */
  async call<T>(cmd: string, body: object | undefined, callback = ""): Promise<T> {
    const socket = this.#socket;
    const id = callback === "" ? `${cmd}_${randomUUID()}` : callback;
    if (socket === null) throw new DeliveryError("unreachable", "WeCom is not connected");
    // The answers to requests of one callback have no ids, so only one such request may be open.
    if (this.#waiting.has(id)) {
      throw new DeliveryError("refused", "WeCom has not answered the previous request");
    }
    const { promise, resolve, reject } = Promise.withResolvers<Frame>();
    this.#waiting.set(id, { resolve, reject });
    const cancel = this.#clock.after(ANSWER_MS, () => {
      this.#waiting.delete(id);
      reject(createUnanswered());
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

function createUnanswered(): DeliveryError {
  return new DeliveryError("unanswered", "WeCom did not answer");
}
