import type { AgentEvent, Line } from "./adapter.ts";
import { getObject, isObject } from "./json_fields.ts";

interface AnswerHandlers {
  answered: (result: Line) => AgentEvent[];
  refused: (error: Line) => AgentEvent[];
}

/** Sends JSON-RPC requests to an agent, and passes on the answers. */
export class JsonRpcClient {
  readonly #say: (message: Line) => void;
  readonly #asked = new Map<number, AnswerHandlers & { timer: ReturnType<typeof setTimeout> | undefined }>();
  #lastId = 0;

  constructor(say: (message: Line) => void) {
    this.#say = say;
  }

  /** Sends a request. Calls `late` with a message when there is no answer within `maxMs`. */
  ask(
    method: string,
    params: Line,
    { maxMs, late, ...asked }: AnswerHandlers & {
      maxMs?: number | undefined;
      late?: (words: string) => void;
    },
  ): void {
    const id = ++this.#lastId;
    const onLate = () => {
      this.#asked.delete(id);
      late?.(`it did not answer ${method} within ${(maxMs ?? 0) / 1_000} s`);
    };
    const timer = maxMs === undefined ? undefined : setTimeout(onLate, maxMs);
    this.#asked.set(id, { ...asked, timer });
    this.#say({ id, method, params });
  }

  /** Returns the events of an answer; none for an answer without a request. */
  hear(line: Line): AgentEvent[] {
    const { id, error } = line;
    const asked = typeof id === "number" ? this.#asked.get(id) : undefined;
    if (asked === undefined) return [];
    this.#asked.delete(Number(id));
    clearTimeout(asked.timer);
    return isObject(error) ? asked.refused(error) : asked.answered(getObject(line, "result"));
  }

  /** Drops all requests without an answer. */
  close(): void {
    for (const { timer } of this.#asked.values()) clearTimeout(timer);
    this.#asked.clear();
  }
}
