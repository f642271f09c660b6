import { LRUCache } from "lru-cache";
import { clampUsage, type Usage, USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import type { UsageSpan } from "./adapter.ts";

const FIELDS = ["input_tokens", "output_tokens", "cost_usd"] as const;

const STEPS_COUNTED_MAX = 1_000;
const KEY_CHARACTERS = 200;

/** Computes the usage of one run from the engine's figures: per run, per step, or session totals. */
export class UsageCounter {
  readonly #before: Usage;
  readonly #run: Usage = { ...USAGE_UNKNOWN };
  readonly #session: Usage = { ...USAGE_UNKNOWN };

  // An engine repeats a step soon, or never.
  readonly #steps = new LRUCache<string, Partial<Usage>>({ max: STEPS_COUNTED_MAX });

  /** `before` holds the session's totals before this run. */
  constructor(before: Usage) {
    this.#before = before;
  }

  /** Adds a figure. A step replaces the earlier step with the same key, because an engine may repeat a step with a higher figure. */
  add(span: UsageSpan, usage: Partial<Usage>, step?: string): void {
    const key = step?.slice(0, KEY_CHARACTERS);
    const before = key === undefined ? {} : this.#steps.get(key) ?? {};
    const figures = clampUsage(mapFields((field) => usage[field] ?? null));
    const known = FIELDS.filter((field) => figures[field] !== null);
    if (key !== undefined) {
      this.#steps.set(key, {
        ...before,
        ...Object.fromEntries(known.map((field) => [field, figures[field]])),
      });
    }
    for (const field of known) {
      const figure = figures[field] ?? 0;
      const value = span === "step" ? figure - (before[field] ?? 0) : figure;
      if (span === "session") this.#session[field] = value;
      else this.#run[field] = span === "step" ? (this.#run[field] ?? 0) + value : value;
    }
  }

  get run(): Usage {
    return clampUsage(mapFields((field) => {
      const total = this.#session[field];
      if (total === null) return roundValue(this.#run[field]);
      const before = this.#before[field] ?? 0;
      // A total below the last one means that the engine has restarted its count.
      return roundValue(total < before ? total : total - before);
    }));
  }

  /** The session's totals after this run, if the engine reports them. */
  get session(): Usage {
    return mapFields((field) => this.#session[field] ?? this.#before[field]);
  }
}

function mapFields(of: (field: (typeof FIELDS)[number]) => number | null): Usage {
  return { input_tokens: of("input_tokens"), output_tokens: of("output_tokens"), cost_usd: of("cost_usd") };
}

// Unrounded, a sum such as 0.1 + 0.2 would show seventeen digits.
function roundValue(value: number | null): number | null {
  return value === null ? null : Number(value.toFixed(9));
}
