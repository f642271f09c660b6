// Generates random requests from the OpenAPI document. Most are nearly valid, so that they pass most checks,
// and all are unusual in some way.
import { loadContract } from "./contract.ts";
import { type Schema, ValueFuzzer } from "./fuzz_value.ts";

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  schema: Schema;
}

interface Target {
  method: string;
  path: string;
  parameters: Parameter[];
  json: Schema | null;
  form: Schema | null;
}

/** A request that can be sent, and printed for a report. */
export interface FuzzRequest {
  /** Method and path of its operation. */
  operation: string;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | null;
}

/** Facts about the service that the fuzzer needs. */
interface FuzzWorld {
  chance: () => number;
  /** Headers or queries that authenticate. */
  callers: { headers?: Record<string, string>; query?: string }[];
  /** The only allowed directories, because a request may delete a named directory. */
  workDirs: string[];
}

export class Fuzzer extends ValueFuzzer {
  readonly #world: FuzzWorld;
  readonly #targets: Target[];

  private constructor(world: FuzzWorld, targets: Target[], schemas: Record<string, Schema>) {
    super(world.chance, world.workDirs, schemas);
    this.#world = world;
    this.#targets = targets;
  }

  static async open(world: FuzzWorld): Promise<Fuzzer> {
    const { document } = await loadContract();
    const below = Object.entries(document.paths).filter(([path]) => path.startsWith("/api/"));
    const targets = below.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): Target => {
        const { parameters = [], requestBody } = operation as unknown as {
          parameters?: Parameter[];
          requestBody?: { content: Record<string, { schema: Schema }> };
        };
        return {
          method: method.toUpperCase(),
          path,
          parameters,
          json: requestBody?.content["application/json"]?.schema ?? null,
          form: requestBody?.content["multipart/form-data"]?.schema ?? null,
        };
      })
    );
    return new Fuzzer(world, targets, document.components.schemas as Record<string, Schema>);
  }

  get operations(): number {
    return this.#targets.length;
  }

  next(): FuzzRequest {
    const target = this.one(this.#targets);
    const caller = this.one(this.#world.callers);
    const headers: Record<string, string> = { ...caller.headers, ...this.#headers(target) };
    const { type, body } = this.#body(target);
    if (type !== null) headers["content-type"] = type;
    const query = this.#query(target, caller.query);
    const url = this.#path(target) + (query === "" ? "" : `?${query}`);
    const method = this.dice(0.02)
      ? this.one(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
      : target.method;
    const bare = method === "GET" || method === "HEAD";
    return { operation: `${target.method} ${target.path}`, method, url, headers, body: bare ? null : body };
  }

  #path(target: Target): string {
    const path = target.path.replace(/(\w+)\/\{\w+\}/g, (_, collection: string) => {
      const value = this.dice(0.8) ? this.id(collection) : this.text(50);
      return `${collection}/${encodeURIComponent(value.toWellFormed()) || "%20"}`;
    });
    if (this.dice(0.01)) {
      return path + this.one(["/", "//", "/x", "%00", ";x=1", "/.", "/%2e%2e"]);
    }
    return path;
  }

  #query(target: Target, token = ""): string {
    const pairs: string[] = token === "" ? [] : [token];
    const add = (name: string, value: string) =>
      pairs.push(`${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`);
    for (const { name, in: place, required, schema } of target.parameters) {
      if (place !== "query" || !this.dice(required ? 0.95 : name === "timeout_ms" ? 1 : 0.12)) {
        continue;
      }
      add(name, this.#parameter(name, schema));
      if (this.dice(0.02)) add(name, this.#parameter(name, schema));
    }
    if (this.dice(0.03)) add(this.text(10), this.text(10));
    if (this.dice(0.01)) {
      pairs.push(this.one(["&&&", "=", "%", "a=%ff", "%00=1", "token", "token=&token="]));
    }
    return pairs.join("&");
  }

  #parameter(name: string, schema: Schema): string {
    // Prevents requests that wait.
    if (name === "timeout_ms") return this.one(["0", "1", "5", "-1", "x", "600001"]);
    if (this.dice(0.85)) {
      if (/(_id|^id|session_key|scope|cursor|before|department)$/.test(name) && this.dice(0.7)) {
        if (!/session_key|scope/.test(name)) return this.id(name.replace(/_id$/, "s"));
        return this.one([`local:${this.id("sessions")}`, "global", "cli:m"]);
      }
      const value = this.value(name, schema, 0);
      return typeof value === "object" ? JSON.stringify(value) : String(value);
    }
    return this.dice(0.5) ? String(this.anyNumber()) : this.text(200);
  }

  #headers(target: Target): Record<string, string> {
    const headers: Record<string, string> = {};
    const ascii = (max: number) => this.text(max).replace(/[^\x20-\x7e]/g, "?").trim();
    if (this.dice(0.05)) {
      headers["idempotency-key"] = this.dice(0.5) ? `k${this.whole(20)}` : ascii(250);
    }
    if (this.dice(0.05)) headers["x-request-id"] = ascii(120);
    if (this.dice(0.05)) {
      headers["last-event-id"] = this.one(["0", "1", "999999", "-1", "x", ascii(30)]);
    }
    if (this.dice(0.03)) {
      headers["x-forwarded-for"] = this.one(["1.2.3.4", "::1", "x", "1.2.3.4, 5.6.7.8", ascii(100)]);
    }
    if (this.dice(0.02)) {
      headers.origin = this.one(["https://evil.example", "null", ascii(20)]);
    }
    if (this.dice(0.02)) headers.range = "bytes=0-1";
    if (this.dice(0.02)) headers["if-none-match"] = "*";
    if (this.dice(0.02)) {
      headers.host = this.one(["localhost", "evil.example", "127.0.0.1:1", "[::1]"]);
    }
    if (target.path === "/api/events" ? this.dice(0.8) : this.dice(0.05)) {
      headers.accept = this.dice(0.7)
        ? "application/json"
        : this.one(["text/event-stream", "*/*", "text/html", ascii(20) || "x"]);
    }
    return headers;
  }

  #body(target: Target): { type: string | null; body: FuzzRequest["body"] } {
    if (target.form !== null && this.dice(target.json === null ? 0.9 : 0.3)) {
      return this.#multipart(target.form);
    }
    const value = target.json === null ? this.odd() : this.value("", target.json, 0);
    let text = JSON.stringify(target.json !== null && this.dice(0.12) ? this.spoil(value) : value) ??
      "null";
    if (this.dice(0.02)) text = text.slice(0, this.whole(text.length + 1));
    if (this.dice(0.01)) text = this.text(100);
    if (this.dice(0.01)) {
      text = this.one([
        "",
        " ",
        "\ufeff{}",
        "{}{}",
        "[".repeat(5_000),
        '{"a":'.repeat(2_000),
        '{"name":"x","name":"y"}',
        "nul",
        "'x'",
      ]);
    }
    const type = this.dice(0.95) ? "application/json" : this.one([
      null,
      "",
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/json; charset=utf-16",
      "multipart/form-data",
      "application/vnd.x+json",
      "a/b/c",
    ]);
    if (this.dice(0.01)) return { type, body: this.#bytes(200) };
    return { type, body: text };
  }

  #multipart(schema: Schema): { type: string; body: Uint8Array<ArrayBuffer> } {
    const boundary = this.one(["b", "----x", "y".repeat(60)]);
    const fields = Object.keys(this.resolve(schema).properties ?? {});
    const parts: string[] = [];
    for (const field of fields) {
      if (this.dice(0.15)) continue;
      const name = this.dice(0.95) ? field : this.text(20);
      const isFile = field === "file" ? this.dice(0.95) : this.dice(0.05);
      const file = isFile ? `; filename="${this.text(40).replace(/["\r\n]/g, "")}"` : "";
      const content = field === "file" ? this.text(500) : String(this.#parameter(field, {}));
      parts.push(
        `--${boundary}\r\ncontent-disposition: form-data; name="${
          name.replace(/["\r\n]/g, "")
        }"${file}\r\n\r\n${content}\r\n`,
      );
      if (this.dice(0.03)) parts.push(parts.at(-1) ?? "");
    }
    let bytes = new TextEncoder().encode(`${parts.join("")}--${boundary}--\r\n`);
    if (this.dice(0.05)) bytes = bytes.slice(0, this.whole(bytes.length));
    if (this.dice(0.05)) bytes[this.whole(bytes.length)] = this.whole(256);
    const type = this.dice(0.95) ? `multipart/form-data; boundary=${boundary}` : this.one([
      "multipart/form-data",
      "multipart/form-data; boundary=",
      "multipart/mixed; boundary=b",
    ]);
    return { type, body: bytes };
  }

  #bytes(max: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length: this.whole(max) }, () => this.whole(256));
  }
}
