import { type ClientConfig, readClientConfig } from "../../src/config/file.ts";
import type { Api } from "../../src/http/app.ts";
import { Credential } from "./credential.ts";
import { usageError } from "../terminal/exit.ts";
import type { Upload } from "./upload_form.ts";
import type { Io } from "../terminal/io.ts";
import { createsSomething, sendTwice } from "./retry.ts";
import { findServerUrl } from "./server_address.ts";
import { parseJson, readProblem, Transport } from "./transport.ts";

type PathParams<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & PathParams<Rest>
  : Path extends `${string}:${infer Name}` ? { [K in Name]: string }
  // deno-lint-ignore ban-types
  : {};

/** What goes with a request: the parts of its path, its query, its body. */
export interface RequestParts<E extends keyof Api> {
  params?: PathParams<E>;
  query?: {
    [K in keyof Api[E]["query"]]?: Api[E]["query"][K] | string | number | boolean | string[] | undefined;
  };
  body?: Api[E]["body"];
  /** Sent instead of a JSON body. */
  upload?: Upload;
  headers?: Record<string, string>;
}

/** An answer: its JSON text unchanged, the same parsed, and its headers. */
export interface Answer<T> {
  json: string;
  value: T;
  headers: Headers;
}

/** What the command line says of the server: its configuration, and a file of certificates to trust. */
interface ClientFlags {
  config?: string | undefined;
  ca?: string | undefined;
  /** How long a lost connection is tried again. */
  reconnectMs?: number;
}

const READY_MAX_MS = 2_000;

/** Talks to the server. Types come from its route table; nothing of it is loaded. */
export class Client {
  readonly #io: Io;
  readonly #flags: ClientFlags;
  readonly #transport: Transport;
  readonly #credential: Credential;
  #config: ClientConfig | null = null;
  #url: string | null = null;

  /** How long a lost connection is tried again. */
  get reconnectMs(): number {
    return this.#flags.reconnectMs ?? 0;
  }

  constructor(io: Io, flags: ClientFlags) {
    this.#io = io;
    this.#flags = flags;
    this.#transport = new Transport(io, flags.ca);
    this.#credential = new Credential(io, this.#transport, () => this.#configuration());
  }

  /** What sends requests of its own, such as a login. */
  get transport(): Transport {
    return this.#transport;
  }

  /**
   * Sends a request and answers its JSON. What creates something carries an idempotency key, and is sent once more after a
   * lost connection (contract 8.6). Throws ServiceError as the server meant it, or `unavailable`.
   */
  async call<E extends keyof Api & string>(
    endpoint: E,
    parts: RequestParts<E> = {},
  ): Promise<Answer<Api[E]["response"]>> {
    if (!createsSomething(endpoint) || parts.upload !== undefined) return await this.#once(endpoint, parts);
    const headers = { "idempotency-key": crypto.randomUUID(), ...parts.headers };
    const { signal } = this.#io;
    return await sendTwice(() => this.#once(endpoint, { ...parts, headers }), {
      signal,
      withinMs: this.reconnectMs,
      isReady: () => this.isReady(READY_MAX_MS),
    });
  }

  async #once<E extends keyof Api & string>(
    endpoint: E,
    parts: RequestParts<E>,
  ): Promise<Answer<Api[E]["response"]>> {
    const response = await this.open(endpoint, parts);
    const json = await response.text();
    return { json, value: json === "" ? undefined : parseJson(json, response), headers: response.headers };
  }

  /** Sends a request and answers the response as it comes, for streams. Throws like call(). */
  async open<E extends keyof Api & string>(endpoint: E, parts: RequestParts<E> = {}): Promise<Response> {
    const [method = "GET", path = "/"] = endpoint.split(" ");
    const filled = fillPath(path, parts.params ?? {});
    this.#credential.check();
    const address = await this.url();
    const url = new URL(address + filled);
    for (const [name, value] of Object.entries(parts.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    const { body, upload } = parts;
    const request = (token: string | null) =>
      new Request(url, {
        method,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(upload === undefined ? {} : { "content-type": upload.contentType }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...parts.headers,
        },
        ...(upload === undefined ? {} : { body: upload.body }),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: this.#io.signal,
      });
    const token = await this.#credential.token(address);
    let response = await this.#transport.send(request(token), url);
    // A service that was started again meanwhile knows neither its own nor our token any more.
    if (response.status === 401 && upload === undefined) {
      const other = await this.#credential.findOtherToken(address);
      if (other !== null) {
        await response.body?.cancel();
        response = await this.#transport.send(request(other), url);
      }
    }
    if (response.ok) return response;
    const problem = await readProblem(response);
    throw response.status === 401 && token === null ? this.#credential.explainMissingToken(address) : problem;
  }

  /** Sends a body to what is no route, in our name, and answers the response as it comes. */
  async post(path: string, headers: Record<string, string>, body: string): Promise<Response> {
    this.#credential.check();
    const address = await this.url();
    const url = new URL(address + path);
    const token = await this.#credential.token(address);
    const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    const { signal } = this.#io;
    const request = new Request(url, {
      method: "POST",
      headers: { ...headers, ...authorization },
      body,
      signal,
    });
    return await this.#transport.send(request, url);
  }

  /** Whether a token that ends may be followed by another one: after a login. */
  get renews(): boolean {
    return this.#credential.renews;
  }

  /** Where the server is. Throws like serverUrl(). */
  async url(): Promise<string> {
    return this.#url ??= await findServerUrl(this.#io, () => this.#configuration());
  }

  /** Asks whether the service is ready, without a token. Throws `unavailable` when nothing answers in time. */
  async isReady(waitMs: number): Promise<boolean> {
    const url = new URL(`${await this.url()}/readyz`);
    const response = await this.#transport.send(
      new Request(url, { signal: AbortSignal.timeout(waitMs) }),
      url,
    );
    await response.body?.cancel();
    return response.ok;
  }

  async #configuration(): Promise<ClientConfig> {
    return this.#config ??= await readClientConfig(this.#flags.config, this.#io.env);
  }
}

/** The path with its parameters. An empty one would be another route, and `.` cannot be sent at all (facts, Deno 8). */
function fillPath(path: string, params: Record<string, string>): string {
  return path.replace(/:(\w+)/g, (_match, name: string) => {
    const value = params[name] ?? "";
    if (value === "") throw usageError(`the ${name} must not be empty`);
    if (value === "." || value === "..") throw usageError(`the ${name} cannot be ${JSON.stringify(value)}`);
    return encodeURIComponent(value.toWellFormed());
  });
}
