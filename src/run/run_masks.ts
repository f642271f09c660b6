import { maskText } from "../engine/process/masked_text.ts";

// Deeper values are refused by the schemas of requests anyway.
const DEPTH_MAX = 50;

/** The secrets of runs in progress, to mask what these runs send to the service. */
export class RunMasks {
  readonly #secrets = new Map<string, readonly string[]>();

  set(executionId: string, secrets: readonly string[]): void {
    this.#secrets.set(executionId, secrets);
  }

  delete(executionId: string): void {
    this.#secrets.delete(executionId);
  }

  /** Masks the secrets of this run in every string of a JSON value. */
  mask(executionId: string, value: unknown): unknown {
    const secrets = this.#secrets.get(executionId);
    return secrets === undefined ? value : maskValue(secrets, value, 0);
  }
}

function maskValue(secrets: readonly string[], value: unknown, depth: number): unknown {
  if (typeof value === "string") return maskText(secrets, value);
  if (typeof value !== "object" || value === null || depth === DEPTH_MAX) return value;
  if (Array.isArray(value)) return value.map((one) => maskValue(secrets, one, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, below]) => [name, maskValue(secrets, below, depth + 1)]),
  );
}
