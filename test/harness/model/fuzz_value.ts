// Generates random values that mostly fit a JSON Schema, and texts that often break services.
/** A part of a JSON Schema. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  default?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

const TEXTS = [
  ...["", " ", "x", "0", "-1", "null", "true", "[]", "{}", "NaN", "1e308", "%", "%00", "%2e%2e%2f"],
  ...["../", "..\\", "/", "//", ".", "..", "a/b", "a?b", "a#b", "a&b=c", "\\", "'", '"', "`"],
  ...["';--", "' or '1'='1", "\\u0000", "\0", "\n", "\r\n", "\t", "\u001b[31m", "\u007f", "\u0085"],
  ...["\u2028", "\ufeff", "\u202e", "é", "e\u0301", "ß", "İ", "日本語", "👩‍👩‍👧", "\ud800", "\udc00x"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "$where", "{{7*7}}", "${7*7}"],
  ...["<script>alert(1)</script>", "=1+1", "@all", "@Ada do it", "local:", "cli:x", "global", "*"],
  ...["*:*", "read:workers", "* * * * *", "0 0 31 2 *", "@daily", "61 * * * *", "Europe/Berlin"],
  ...["Mars/Base", "UTC", "immediate", "countdown", "scheduled", "pending", "running,failed", ","],
  ...[",,", "2026-01-01"],
];
const NUMBERS = [
  ...[0, 1, -1, 2, 50, 100, 101, 200, 201, 1_000, 1.5, -0, 1e9, 2 ** 31, 2 ** 53, 2 ** 53 + 2],
  ...[1e21, 1e308, -1e308, 8_640_000_000_000_001],
];
const ODD: unknown[] = [null, true, false, [], {}, "", 0, [null], { a: 1 }, [[]], [[[[[[]]]]]], "x"];
const KNOWN_MAX = 60;

/** Generates values, and learns ids from responses. */
export class ValueFuzzer {
  readonly #chance: () => number;
  readonly #workDirs: string[];
  readonly #schemas: Record<string, Schema>;
  /** Known ids, by the collection of the request. */
  readonly #ids = new Map<string, string[]>();
  readonly #paths: string[] = [];

  constructor(chance: () => number, workDirs: string[], schemas: Record<string, Schema>) {
    this.#chance = chance;
    this.#workDirs = workDirs;
    this.#schemas = schemas;
  }

  /** Remembers ids and paths in a response of a collection (`tasks`). */
  learn(text: string, collection = ""): void {
    const known = this.#ids.get(collection) ?? [];
    this.#ids.set(collection, known);
    for (const [id] of text.matchAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g)) {
      this.#keep(known, id);
    }
    for (const [, path = ""] of text.matchAll(/"path":"(\/[^"]+)"/g)) this.#keep(this.#paths, path);
  }

  #keep(known: string[], one: string): void {
    if (known.length < KNOWN_MAX) known.push(one);
    else known[Math.floor(this.#chance() * KNOWN_MAX)] = one;
  }

  dice(share: number): boolean {
    return this.#chance() < share;
  }

  one<T>(list: readonly T[]): T {
    return list[Math.floor(this.#chance() * list.length)] as T;
  }

  whole(below: number): number {
    return Math.floor(this.#chance() * below);
  }

  resolve(schema: Schema): Schema {
    const name = schema.$ref?.split("/").at(-1);
    return name === undefined ? schema : this.#schemas[name] ?? {};
  }

  /** Returns mostly an id of this collection, else any other. */
  id(collection: string): string {
    const known = this.#ids.get(collection) ?? [];
    if (known.length > 0 && this.dice(0.8)) return this.one(known);
    return this.one([...this.#ids.values()].flat()) ?? crypto.randomUUID();
  }

  anyNumber(): number {
    return this.one(NUMBERS);
  }

  /** Returns a value that mostly fits the schema. */
  value(name: string, given: Schema, depth: number): unknown {
    const schema = this.resolve(given);
    if (name === "work_dir") return this.one(this.#workDirs);
    if (this.dice(0.015)) return this.odd();
    if (depth > 6) return null;
    const variants = schema.anyOf ?? schema.oneOf;
    if (variants !== undefined) return this.value(name, this.one(variants), depth + 1);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return this.one(schema.enum);
    const type = Array.isArray(schema.type) ? this.one(schema.type) : schema.type;
    switch (type) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return Array.from({ length: this.whole(4) }, () => this.value(name, schema.items ?? {}, depth + 1));
      case "boolean":
        return this.dice(0.5);
      case "null":
        return null;
      case "integer":
      case "number":
        return this.#number(name, schema);
      default:
        return this.#string(name, schema);
    }
  }

  #object(schema: Schema, depth: number): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      const needed = schema.required?.includes(name) ?? false;
      if (this.dice(needed ? 0.97 : 0.4)) made[name] = this.value(name, inner, depth + 1);
    }
    if (typeof schema.additionalProperties === "object") {
      for (let i = this.whole(3); i > 0; i--) {
        made[this.one(["echo", "claude", "none", this.text(10)])] = this.value(
          "",
          schema.additionalProperties,
          depth + 1,
        );
      }
    }
    return made;
  }

  #number(name: string, schema: Schema): number {
    if (name === "scheduled_at" && this.dice(0.7)) {
      return Date.now() + this.one([-1, 0, 4_999, 5_100, 60_000, 1e10]);
    }
    if (this.dice(0.1)) return this.anyNumber();
    const { minimum = 0, maximum = 1_000 } = schema;
    if (this.dice(0.15)) return this.one([minimum, maximum, minimum - 1, maximum + 1]);
    return minimum + this.whole(Math.min(1_000, maximum - minimum));
  }

  #string(name: string, schema: Schema): string {
    if ((schema.format === "uuid" || /(^|_)id$/.test(name)) && this.dice(0.85)) {
      return this.id(name.replace(/_id$/, "s"));
    }
    if (name === "media_path" && this.#paths.length > 0 && this.dice(0.7)) return this.one(this.#paths);
    if (name === "cron") {
      return this.one([
        "* * * * *",
        "0 9 * * 1-5",
        "0 0 31 2 *",
        "61 * * * *",
        "@daily",
        "",
        this.text(20),
      ]);
    }
    if (name === "scope" && this.dice(0.7)) {
      return this.dice(0.5) ? `local:${this.id("sessions")}` : "global";
    }
    if (/username|password/.test(name) && this.dice(0.5)) return this.one(["admin", "x"]);
    const max = schema.maxLength ?? 300;
    // At the limit, and one past it.
    if (this.dice(0.01)) return "x".repeat(Math.min(max, 262_144) + this.whole(2));
    return this.text(Math.min(max, 300));
  }

  text(max: number): string {
    if (this.dice(0.5)) return this.one(TEXTS).slice(0, max);
    let text = "";
    for (let i = 1 + this.whole(4); i > 0; i--) text += this.dice(0.3) ? this.one(TEXTS) : this.#word();
    return text.slice(0, max);
  }

  #word(): string {
    return Array.from({ length: 1 + this.whole(10) }, () => String.fromCharCode(97 + this.whole(26))).join(
      "",
    );
  }

  odd(): unknown {
    return this.dice(0.5) ? this.one(ODD) : this.dice(0.5) ? this.anyNumber() : this.text(60);
  }

  /** Adds one fault: a missing field, an extra field, or a wrong type. */
  spoil(value: unknown): unknown {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return this.odd();
    const spoiled = { ...value as Record<string, unknown> };
    const name = this.one(Object.keys(spoiled));
    const how = this.whole(3);
    // A request may delete a named directory, so it is never random.
    if (how === 0 && name !== undefined) delete spoiled[name];
    else if (how === 1 && name !== undefined && name !== "work_dir") spoiled[name] = this.odd();
    else spoiled[`${this.text(10)}x`] = this.odd();
    return spoiled;
  }
}
