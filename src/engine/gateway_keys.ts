import { randomBytes } from "node:crypto";

/** The marker of these keys, which no token of the service starts with. */
const PREFIX = "svc_gw_";
const KEY_BYTES = 32;

/**
 * Keys of agent processes that stay open, for gateways only. Such a process has one key for all its runs, because it reads its environment
 * once. During a run the key represents the token of that run, and between runs it is invalid (contract-3 22).
 */
export class GatewayKeys {
  readonly #tokens = new Map<string, string>();

  /** Creates the key of a process. It is invalid until assign(). */
  create(): string {
    return PREFIX + randomBytes(KEY_BYTES).toString("base64url");
  }

  /** Makes the key represent the token of a run. */
  assign(key: string, token: string): void {
    this.#tokens.set(key, token);
  }

  /** Ends what assign() did. */
  revoke(key: string): void {
    this.#tokens.delete(key);
  }

  /** Returns the token that a key represents, null for a key without a run, and any other text unchanged. */
  resolve(presented: string): string | null {
    return presented.startsWith(PREFIX) ? this.#tokens.get(presented) ?? null : presented;
  }
}
