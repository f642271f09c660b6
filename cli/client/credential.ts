import { join } from "node:path";
import { keyBytes, OPERATOR_KEY_TTL_S, OPERATOR_KEY_VERSION, signToken } from "../../src/base/token.ts";
import type { ClientConfig } from "../../src/config/file.ts";
import { ServiceError } from "../../src/domain/error.ts";
import { usageError } from "../terminal/exit.ts";
import { type Login, readLogins, updateLogins } from "./login_file.ts";
import type { Io } from "../terminal/io.ts";
import { readServerFile } from "./server_address.ts";
import type { Transport } from "./transport.ts";

// A token that ends so soon is renewed before it is sent.
const RENEW_BEFORE_MS = 60_000;

/** What a renewal answers. */
interface RefreshResponse {
  access_token: string;
  expires_in: number;
}

/**
 * The token that goes with a request: SVC_TOKEN, SVC_TOKEN_FILE, the login at that address, or one that we sign with the key
 * of the service whose address it is. In a run there is the run's token or none: an agent must never get the operator's
 * rights (contract 2, contract 8.14, contract 9).
 */
export class Credential {
  /** Whether a token comes from a login, and can be renewed. */
  renews = false;
  readonly #io: Io;
  readonly #transport: Transport;
  readonly #configuration: () => Promise<ClientConfig>;

  constructor(io: Io, transport: Transport, configuration: () => Promise<ClientConfig>) {
    this.#io = io;
    this.#transport = transport;
    this.#configuration = configuration;
  }

  /** Throws `unauthenticated` in a run without a token. */
  check(): void {
    const { SVC_TOKEN, SVC_TOKEN_FILE, SVC_RUN_ID } = this.#io.env;
    if (SVC_TOKEN || SVC_TOKEN_FILE || !SVC_RUN_ID) return;
    throw new ServiceError(
      "unauthenticated",
      "Cannot log in: this is an agent's run and its SVC_TOKEN is missing",
    );
  }

  /** The token for this address, or null when we have none. Throws `unauthenticated` and usage errors. */
  async token(address: string): Promise<string | null> {
    this.check();
    const { env } = this.#io;
    if (env.SVC_TOKEN) return checkToken(env.SVC_TOKEN, "SVC_TOKEN");
    if (env.SVC_TOKEN_FILE) return checkToken(readToken(env.SVC_TOKEN_FILE), "SVC_TOKEN_FILE");
    const host = (await readLogins(this.#io)).hosts[address];
    if (host === undefined) return await this.#signed(address);
    this.renews = true;
    return host.expires_at - Date.now() > RENEW_BEFORE_MS
      ? host.access_token
      : await this.#renewed(address, host);
  }

  /** Another token after the first one was refused, or null when there can be none. */
  async findOtherToken(address: string): Promise<string | null> {
    const { SVC_TOKEN, SVC_RUN_ID, SVC_TOKEN_FILE } = this.#io.env;
    if (SVC_TOKEN || SVC_RUN_ID || SVC_TOKEN_FILE) return null;
    const host = (await readLogins(this.#io)).hosts[address];
    return host === undefined ? await this.#signed(address) : await this.#renewed(address, host);
  }

  /** Why there is no token for this address, and how to get one. */
  explainMissingToken(address: string): ServiceError {
    return new ServiceError(
      "unauthenticated",
      `Cannot log in at ${address}: there is no token for it; run svc ctl login ${address}, set SVC_TOKEN or SVC_TOKEN_FILE, ` +
        "or name the configuration of the service that runs there with -c",
    );
  }

  async #renewed(address: string, host: Login): Promise<string> {
    const body = { refresh_token: host.refresh_token };
    const renewed = await this.#transport.post<RefreshResponse>(address, "/api/auth/refresh", body).catch(
      (error) => {
        if (!(error instanceof ServiceError) || error.code !== "unauthenticated") throw error;
        throw new ServiceError(
          "unauthenticated",
          `Cannot go on as ${host.username} at ${address}: the login has ended; log in again: svc ctl login ${address}`,
        );
      },
    );
    const expires_at = Date.now() + renewed.expires_in * 1000;
    const fresh = { ...host, access_token: renewed.access_token, expires_at };
    // Whoever logged out meanwhile stays logged out.
    await updateLogins(this.#io, ({ current, hosts }) => ({
      current,
      hosts: hosts[address] === undefined ? hosts : { ...hosts, [address]: fresh },
    }));
    return renewed.access_token;
  }

  // Only the service that wrote the file beside the key gets such a token, and only it takes it.
  async #signed(address: string): Promise<string | null> {
    const { dataDir, jwtSecret, username } = await this.#configuration();
    const running = readServerFile(dataDir);
    if (running === null || running.instance === "" || running.url !== address) return null;
    const key = jwtSecret || readKey(join(dataDir, "secret.key"));
    const claims = {
      typ: "access" as const,
      sub: `operator:${username}`,
      scope: "*:*",
      ver: OPERATOR_KEY_VERSION,
      instance: running.instance,
    };
    return await signToken(keyBytes(key), claims, OPERATOR_KEY_TTL_S, Date.now());
  }
}

/** The message of an agent's run, "" when there is none. An agent that stays open between runs finds it in its token (contract 19). */
export function readRunMessageId({ SVC_MESSAGE_ID, SVC_RUN_ID, SVC_TOKEN_FILE }: Io["env"]): string {
  if (SVC_MESSAGE_ID || !SVC_RUN_ID || !SVC_TOKEN_FILE) return SVC_MESSAGE_ID ?? "";
  const [, claims = ""] = readToken(SVC_TOKEN_FILE).split(".");
  try {
    const text = new TextDecoder().decode(Uint8Array.fromBase64(claims, { alphabet: "base64url" }));
    return String(JSON.parse(text).message_id ?? "");
  } catch {
    return "";
  }
}

function checkToken(token: string, name: string): string {
  // Said here, since what the runtime says of such a header has the token in it.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ServiceError(
    "unauthenticated",
    `Cannot log in with ${name}: it has spaces, line breaks or other characters that no token has`,
  );
}

function readToken(path: string): string {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch {
    throw usageError(`SVC_TOKEN_FILE: cannot read ${path}; name a file that this user may read`);
  }
}

function readKey(path: string): string {
  try {
    return Deno.readTextFileSync(path).trim();
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
