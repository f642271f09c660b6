import { join } from "node:path";
import { type ClientConfig, readClientConfig } from "../src/config/file.ts";
import { type ErrorCode, ServiceError } from "../src/domain/error.ts";
import type { Api } from "../src/http/app.ts";
import { connectionFault, trusting } from "./connection.ts";
import { usage } from "./exit.ts";
import { keyBytes, OPERATOR_KEY_TTL_S, OPERATOR_KEY_VERSION, signToken } from "../src/base/token.ts";
import type { Upload } from "./form.ts";
import type { Io } from "./io.ts";
import { serverUrl } from "./server_address.ts";

type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & ParamsOf<Rest>
  : Path extends `${string}:${infer Name}` ? { [K in Name]: string }
  // deno-lint-ignore ban-types
  : {};

/** What goes with a request: the parts of its path, its query, its body. */
export interface RequestParts<E extends keyof Api> {
  params?: ParamsOf<E>;
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
export interface ClientFlags {
  config?: string | undefined;
  ca?: string | undefined;
}

/** Talks to the server. Types come from its route table; nothing of it is loaded. */
export class Client {
  readonly #io: Io;
  readonly #flags: ClientFlags;
  #config: ClientConfig | null = null;
  #url: string | null = null;
  #trusting: { client?: Deno.HttpClient } | null = null;

  constructor(io: Io, flags: ClientFlags) {
    this.#io = io;
    this.#flags = flags;
  }

  /** Sends a request and answers its JSON. Throws ServiceError as the server meant it, or `unavailable`. */
  async call<E extends keyof Api & string>(
    endpoint: E,
    parts: RequestParts<E> = {},
  ): Promise<Answer<Api[E]["response"]>> {
    const response = await this.open(endpoint, parts);
    const json = await response.text();
    return { json, value: json === "" ? undefined : parsed(json, response), headers: response.headers };
  }

  /** Sends a request and answers the response as it comes, for streams. Throws like call(). */
  async open<E extends keyof Api & string>(endpoint: E, parts: RequestParts<E> = {}): Promise<Response> {
    const [method = "GET", path = "/"] = endpoint.split(" ");
    const filled = fill(path, parts.params ?? {});
    const token = await this.#token();
    const url = new URL(await this.url() + filled);
    for (const [name, value] of Object.entries(parts.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    const { body, upload } = parts;
    const request = new Request(url, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(upload === undefined ? {} : { "content-type": upload.contentType }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...parts.headers,
      },
      ...(upload === undefined ? {} : { body: upload.body }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: this.#io.signal,
    });
    const response = await this.#send(request, url);
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  async #send(request: Request, url: URL): Promise<Response> {
    this.#trusting ??= await this.#certificates();
    const { client } = this.#trusting;
    try {
      return await (client === undefined ? fetch(request) : fetch(request, { client }));
    } catch (error) {
      if (this.#io.signal.aborted) throw error;
      throw connectionFault(error, url, Boolean(this.#io.env.SVC_RUN_ID));
    }
  }

  async #certificates(): Promise<{ client?: Deno.HttpClient }> {
    const { SVC_CA_FILE } = this.#io.env;
    if (this.#flags.ca !== undefined) return { client: await trusting(this.#flags.ca, "--ca") };
    return SVC_CA_FILE ? { client: await trusting(SVC_CA_FILE, "SVC_CA_FILE") } : {};
  }

  /** Where the server is. Throws like serverUrl(). */
  async url(): Promise<string> {
    return this.#url ??= await serverUrl(this.#io.env, () => this.#configuration());
  }

  /** Asks whether the service is ready, without a token. Throws `unavailable` when nothing answers in time. */
  async isReady(waitMs: number): Promise<boolean> {
    const url = new URL(`${await this.url()}/readyz`);
    const response = await this.#send(new Request(url, { signal: AbortSignal.timeout(waitMs) }), url);
    await response.body?.cancel();
    return response.ok;
  }

  // In a run there is the run's token or none: an agent must never get the operator's rights (contract 2).
  async #token(): Promise<string> {
    const { env } = this.#io;
    if (env.SVC_TOKEN) {
      // Said here, since what the runtime says of such a header has the token in it.
      if (/^[\x21-\x7e]+$/.test(env.SVC_TOKEN)) return env.SVC_TOKEN;
      throw new ServiceError(
        "unauthenticated",
        "Cannot log in with SVC_TOKEN: it has spaces, line breaks or other characters that no token has",
      );
    }
    if (env.SVC_RUN_ID) {
      throw new ServiceError(
        "unauthenticated",
        "Cannot log in: this is an agent's run and its SVC_TOKEN is missing",
      );
    }
    const { dataDir, jwtSecret, username } = await this.#configuration();
    const key = jwtSecret || await readKey(join(dataDir, "secret.key"));
    const claims = {
      typ: "access" as const,
      sub: `operator:${username}`,
      scope: "*:*",
      ver: OPERATOR_KEY_VERSION,
    };
    return await signToken(keyBytes(key), claims, OPERATOR_KEY_TTL_S, Date.now());
  }

  async #configuration(): Promise<ClientConfig> {
    return this.#config ??= await readClientConfig(this.#flags.config, this.#io.env);
  }
}

async function readKey(path: string): Promise<string> {
  try {
    return (await Deno.readTextFile(path)).trim();
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound
      ? "there is none, so no service was ever started here"
      : "this user may not read it";
    throw new ServiceError(
      "unauthenticated",
      `Cannot log in with the key ${path}: ${why}; name the server's configuration with -c, or set SVC_TOKEN`,
    );
  }
}

/** The path with its parameters. An empty one would be another route, and `.` cannot be sent at all (facts, Deno 8). */
function fill(path: string, params: Record<string, string>): string {
  return path.replace(/:(\w+)/g, (_match, name: string) => {
    const value = params[name] ?? "";
    if (value === "") throw usage(`the ${name} must not be empty`);
    if (value === "." || value === "..") throw usage(`the ${name} cannot be ${JSON.stringify(value)}`);
    return encodeURIComponent(value.toWellFormed());
  });
}

function parsed(json: string, response: Response) {
  try {
    return JSON.parse(json);
  } catch {
    throw strange(response.status);
  }
}

function strange(status: number): ServiceError {
  const code = status === 503 || status === 502 ? "unavailable" : "internal";
  return new ServiceError(
    code,
    `The server answered ${status} and not as a service of this kind does: is it another program's port?`,
  );
}

/** A problem document the way it came. */
export class Problem extends ServiceError {
  readonly json: string;

  constructor(code: ErrorCode, detail: string, json: string) {
    super(code, detail);
    this.json = json;
  }

  /** The same, saying a flag where the server named the field that came from it; `json` stays as it is. */
  named(flagOf: (field: string) => string | null): Problem {
    const fields: { path: string }[] = JSON.parse(this.json).errors ?? [];
    const words = fields.reduce((said, { path }) => {
      const flag = path === "" ? null : flagOf(path);
      return flag === null ? said : said.replace(`${path}: `, `${flag}: `);
    }, this.message);
    return new Problem(this.code, words, this.json);
  }
}

async function problemOf(response: Response): Promise<ServiceError> {
  const json = await response.text();
  try {
    const { code, detail } = JSON.parse(json);
    if (typeof code === "string" && typeof detail === "string") {
      return new Problem(code as ErrorCode, detail, json);
    }
  } catch {
    // Something that is not our server answered.
  }
  return strange(response.status);
}
