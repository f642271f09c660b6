import type { AgentEvent, Line } from "./adapter.ts";
import { isObject, objectAt } from "./json_fields.ts";

/** What is done with the answer to a request. */
interface Asked {
  answered: (result: Line) => AgentEvent[];
  refused: (error: Line) => AgentEvent[];
}

/** Requests by JSON-RPC to an agent, and what becomes of their answers. */
export class Requests {
  readonly #say: (message: Line) => void;
  readonly #asked = new Map<number, Asked & { timer: ReturnType<typeof setTimeout> | undefined }>();
  #lastId = 0;

  constructor(say: (message: Line) => void) {
    this.#say = say;
  }

  /** Asks; `late` is called with what to say of it when there is no answer for so long. */
  ask(
    method: string,
    params: Line,
    { maxMs, late, ...asked }: Asked & { maxMs?: number | undefined; late?: (words: string) => void },
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

  /** What an answer means; nothing when it was not asked for. */
  hear(line: Line): AgentEvent[] {
    const { id, error } = line;
    const asked = typeof id === "number" ? this.#asked.get(id) : undefined;
    if (asked === undefined) return [];
    this.#asked.delete(Number(id));
    clearTimeout(asked.timer);
    return isObject(error) ? asked.refused(error) : asked.answered(objectAt(line, "result"));
  }

  /** Nobody waits for an answer any more. */
  close(): void {
    for (const { timer } of this.#asked.values()) clearTimeout(timer);
    this.#asked.clear();
  }
}
