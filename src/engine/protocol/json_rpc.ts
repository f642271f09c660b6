import type { AgentEvent, Line } from "./adapter.ts";
import { getObject, isObject } from "./json_fields.ts";

interface ClientOptions {
  say: (message: Line) => void;
  /** Handles an error response, if the request does not. */
  refused: (error: Line) => AgentEvent[];
  /** Called with a message when a response does not arrive within the request's limit. */
  late: (words: string) => void;
}

interface Request {
  answered: (result: Line) => AgentEvent[];
  refused?: (error: Line) => AgentEvent[];
  /** Limit for the response. Absent: none. */
  maxMs?: number;
}

/** Sends JSON-RPC requests to an agent, and passes on the responses. */
export class JsonRpcClient {
  readonly #options: ClientOptions;
  readonly #pending = new Map<number, Request & { timer: ReturnType<typeof setTimeout> | undefined }>();
  #lastId = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  ask(method: string, params: Line, request: Request): void {
    const { maxMs } = request;
    const id = ++this.#lastId;
    const timer = maxMs === undefined ? undefined : setTimeout(() => {
      this.#pending.delete(id);
      this.#options.late(`it did not answer ${method} within ${maxMs / 1_000} s`);
    }, maxMs);
    this.#pending.set(id, { ...request, timer });
    this.#options.say({ id, method, params });
  }

  /** Returns the events of a response; none for a response without a request. */
  hear(line: Line): AgentEvent[] {
    const { id, error } = line;
    const request = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (request === undefined) return [];
    this.#pending.delete(Number(id));
    clearTimeout(request.timer);
    const { answered, refused = this.#options.refused } = request;
    return isObject(error) ? refused(error) : answered(getObject(line, "result"));
  }

  /** Drops all requests without a response. */
  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer);
    this.#pending.clear();
  }
}
