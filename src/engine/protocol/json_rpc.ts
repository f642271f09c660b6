import type { AgentEvent, Line } from "./adapter.ts";
import { getObject, isObject } from "./json_fields.ts";

interface AnswerHandlers {
  answered: (result: Line) => AgentEvent[];
  refused: (error: Line) => AgentEvent[];
}

/** Sends JSON-RPC requests to an agent, and passes on the answers. */
export class JsonRpcClient {
  readonly #say: (message: Line) => void;
  readonly #pending = new Map<
    number,
    AnswerHandlers & { timer: ReturnType<typeof setTimeout> | undefined }
  >();
  #lastId = 0;

  constructor(say: (message: Line) => void) {
    this.#say = say;
  }

  /** Sends a request. Calls `late` with a message when there is no answer within `maxMs`. */
  ask(
    method: string,
    params: Line,
    { maxMs, late, ...handlers }: AnswerHandlers & {
      maxMs?: number | undefined;
      late?: (words: string) => void;
    },
  ): void {
    const id = ++this.#lastId;
    const onLate = () => {
      this.#pending.delete(id);
      late?.(`it did not answer ${method} within ${(maxMs ?? 0) / 1_000} s`);
    };
    const timer = maxMs === undefined ? undefined : setTimeout(onLate, maxMs);
    this.#pending.set(id, { ...handlers, timer });
    this.#say({ id, method, params });
  }

  /** Returns the events of an answer; none for an answer without a request. */
  hear(line: Line): AgentEvent[] {
    const { id, error } = line;
    const handlers = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (handlers === undefined) return [];
    this.#pending.delete(Number(id));
    clearTimeout(handlers.timer);
    return isObject(error) ? handlers.refused(error) : handlers.answered(getObject(line, "result"));
  }

  /** Drops all requests without an answer. */
  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer);
    this.#pending.clear();
  }
}
