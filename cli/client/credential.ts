import { join } from "node:path";
import { OPERATOR_KEY_TTL_S, OPERATOR_KEY_VERSION, readKeyBytes, signToken } from "../../src/base/token.ts";
import type { ClientConfig } from "../../src/config/file.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { explainUnreadable, usageError } from "../terminal/exit.ts";
import { type Login, readLogins, updateLogins } from "./login_file.ts";
import type { Io } from "../terminal/io.ts";
import { readServerFile } from "./server_address.ts";
import type { Transport } from "./transport.ts";

// A token with less time left is renewed before the request.
const RENEW_BEFORE_MS = 60_000;

interface RefreshResponse {
  access_token: string;
  expires_in: number;
}

/**
 * Finds the token of a request: SVC_TOKEN, SVC_TOKEN_FILE, the login at the address, or one signed with the key of
 * the local service. A run has its own token or none: an agent must never get the operator's rights (contract 2,
 * contract 8.14, contract 9).
 */
export class Credential {
  /** Whether the token comes from a login and can be renewed. */
  canRenew = false;
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
      "Cannot log in: SVC_TOKEN is missing in this agent's run",
    );
  }

  /** Returns the token for an address, or null without one. Throws `unauthenticated` and usage errors. */
  async token(address: string): Promise<string | null> {
    this.check();
    const { env } = this.#io;
    if (env.SVC_TOKEN) return checkToken(env.SVC_TOKEN, "SVC_TOKEN");
    if (env.SVC_TOKEN_FILE) return checkToken(readToken(env.SVC_TOKEN_FILE), "SVC_TOKEN_FILE");
    const host = (await readLogins(this.#io)).hosts[address];
    if (host === undefined) return await this.#sign(address);
    this.canRenew = true;
    return host.expires_at - Date.now() > RENEW_BEFORE_MS
      ? host.access_token
      : await this.#renew(address, host);
  }

  /** Returns another token after the first one was refused, or null. */
  async findOtherToken(address: string): Promise<string | null> {
    const { SVC_TOKEN, SVC_RUN_ID, SVC_TOKEN_FILE } = this.#io.env;
    if (SVC_TOKEN || SVC_RUN_ID || SVC_TOKEN_FILE) return null;
    const host = (await readLogins(this.#io)).hosts[address];
    return host === undefined ? await this.#sign(address) : await this.#renew(address, host);
  }

  explainMissingToken(address: string): ServiceError {
    return new ServiceError(
      "unauthenticated",
      `Cannot log in to ${address}: no token. Run \`svc ctl login ${address}\`, set SVC_TOKEN or SVC_TOKEN_FILE, ` +
        "or specify the configuration of that service with -c.",
    );
  }

  async #renew(address: string, host: Login): Promise<string> {
    const body = { refresh_token: host.refresh_token };
    const renewed = await this.#transport.post<RefreshResponse>(address, "/api/auth/refresh", body).catch(
      (error) => {
        if (!(error instanceof ServiceError) || error.code !== "unauthenticated") throw error;
        throw new ServiceError(
          "unauthenticated",
          `Cannot log in to ${address} as ${host.username}: the login has expired. Run \`svc ctl login ${address}\`.`,
        );
      },
    );
    const expires_at = Date.now() + renewed.expires_in * 1000;
    const fresh = { ...host, access_token: renewed.access_token, expires_at };
    // If a logout happened meanwhile, it stays in effect.
    await updateLogins(this.#io, ({ current, hosts }) => ({
      current,
      hosts: hosts[address] === undefined ? hosts : { ...hosts, [address]: fresh },
    }));
    return renewed.access_token;
  }

  // Only the service that wrote server.json next to the key gets and accepts such a token.
  async #sign(address: string): Promise<string | null> {
    const { dataDir, jwtSecret, username } = await this.#configuration();
    const running = readServerFile(dataDir);
    if (running === null || running.instance === "" || running.url !== address) return null;
    // No proxy may read a token with all rights (contract-3 20.6).
    this.#transport.connectDirectly(new URL(address).hostname);
    const key = jwtSecret || readKey(join(dataDir, "secret.key"));
    const claims = {
      typ: "access" as const,
      sub: `operator:${username}`,
      scope: "*:*",
      ver: OPERATOR_KEY_VERSION,
      instance: running.instance,
    };
    return await signToken(readKeyBytes(key), claims, OPERATOR_KEY_TTL_S, Date.now());
  }
}

/**
 * Returns the message ID of an agent's run, or "". An agent that stays open between runs has it in its token
 * (contract 19).
 */
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
  // The runtime's own error for such a header would contain the token.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ServiceError(
    "unauthenticated",
    `Cannot log in with ${name}: a token has no spaces, line breaks or special characters`,
  );
}

function readToken(path: string): string {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch {
    throw usageError(`SVC_TOKEN_FILE: cannot read ${path}. Specify a readable file.`);
  }
}

function readKey(path: string): string {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch (error) {
    throw new ServiceError(
      "unauthenticated",
      `Cannot log in with the key ${path}: ${
        explainUnreadable(error)
      }. Specify the server's configuration with -c, or set SVC_TOKEN.`,
    );
  }
}
