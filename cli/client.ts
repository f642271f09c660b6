import { join } from "node:path";
import { type ClientConfig, readClientConfig } from "../src/config/file.ts";
import { type ErrorCode, ServiceError } from "../src/domain/error.ts";
import type { Api } from "../src/http/app.ts";
import { usage } from "./exit.ts";
import { keyBytes, OPERATOR_KEY_TTL_S, OPERATOR_KEY_VERSION, signToken } from "../src/base/token.ts";
import type { Upload } from "./form.ts";
import type { Io } from "./io.ts";

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

/** Talks to the server. Types come from its route table; nothing of it is loaded. */
export class Client {
  readonly #io: Io;
  readonly #flag: string | undefined;
  #config: ClientConfig | null = null;

  constructor(io: Io, configFlag: string | undefined) {
    this.#io = io;
    this.#flag = configFlag;
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
    const url = new URL(await this.url() + fill(path, parts.params ?? {}));
    for (const [name, value] of Object.entries(parts.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    const { body, upload } = parts;
    const request = new Request(url, {
      method,
      headers: {
        authorization: `Bearer ${await this.#token()}`,
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
    try {
      return await fetch(request);
    } catch (error) {
      if (this.#io.signal.aborted) throw error;
      throw new ServiceError(
        "unavailable",
        // An agent that takes this for advice must not start a service of its own.
        `Cannot reach the service at ${url.origin}: ${
          this.#io.env.SVC_RUN_ID
            ? "it is stopping or gone; try again in a moment"
            : "is it running? Start it with: svc serve"
        }`,
        { cause: error },
      );
    }
  }

  /** Where the server is: SVC_URL, else what the configuration says, else what the server left in its data directory. */
  async url(): Promise<string> {
    const given = this.#io.env.SVC_URL;
    if (given) {
      // A name and password in it would take the place of our token.
      const { username, search, hash } = URL.parse(given) ?? { username: "x" };
      if (!/^https?:\/\//.test(given) || username || search || hash || /\/api\/*$/.test(given)) {
        const shown = JSON.stringify(given.replace(/\/\/.*@/, "//…@"));
        throw usage(
          `SVC_URL: ${shown} is not an address such as http://127.0.0.1:8080, without /api behind it`,
        );
      }
      return given.replace(/\/+$/, "");
    }
    const { host, port, dataDir } = await this.#configuration();
    if (port !== 0) {
      const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
      return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
    }
    try {
      return JSON.parse(await Deno.readTextFile(join(dataDir, "server.json"))).url;
    } catch {
      throw new ServiceError(
        "unavailable",
        `Cannot find the service: no server runs on the data directory ${dataDir}; start it with: svc serve`,
      );
    }
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
    return this.#config ??= await readClientConfig(this.#flag, this.#io.env);
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
