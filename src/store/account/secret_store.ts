import type { Clock } from "../../base/clock.ts";
import { computeSecretKeyId, openSecret, type SealedSecret, sealSecret } from "./secret_cipher.ts";
import { readSecretReference } from "../../domain/account/secret.ts";
import type { Database, Statement } from "../db/database.ts";
import { findSecret, listAllSecrets, listLostSecrets, recordSecretUse, resealSecret } from "./secret.ts";

/** A stored value, or why there is none: another signing key encrypted it (`lost`), or no secret has this name (`missing`). */
export type SecretValue = { state: "value"; value: string } | { state: "lost" } | { state: "missing" };

const USE_NOTED_EVERY_MS = 60_000;

interface SecretStoreOptions {
  db: Database;
  clock: Clock;
  /** Returns the signing key, which changes at a rotation. */
  key: () => Uint8Array;
}

/** The only place that encrypts and decrypts secrets. This process owns the database, so its queue orders all changes. */
export class SecretStore {
  readonly #options: SecretStoreOptions;
  readonly #listeners = new Set<(change: SecretChange) => Promise<void>>();
  /** The last change in the queue. A read waits for it, because a rotation changes the key and all rows. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: SecretStoreOptions) {
    this.#options = options;
  }

  /** Reads a value and records its use, to the minute. */
  async read(name: string): Promise<SecretValue> {
    await this.#last.catch(() => {});
    const { db, clock, key } = this.#options;
    const row = await findSecret(db, name);
    if (row === null) return { state: "missing" };
    const value = await openSecret(key(), name, row);
    if (value === null) return { state: "lost" };
    const now = clock.now();
    if (row.last_used_at === null || now - row.last_used_at >= USE_NOTED_EVERY_MS) {
      // The reader does not wait for this write and succeeds without it.
      void db.write([recordSecretUse(name, now)]).catch(() => {});
    }
    return { state: "value", value };
  }

  /** Returns a configured text, or the value of `secret:<name>`. Throws an Error with the way out for a lost or missing secret. */
  async resolve(text: string): Promise<string> {
    const name = readSecretReference(text);
    if (name === null) return text;
    const found = await this.read(name);
    if (found.state === "value") return found.value;
    // Many can read the text, and only admins may see names of secrets.
    throw new Error(
      found.state === "lost"
        ? "another signing key encrypted its secret. Set the secret again, or restore that key. svc ctl system doctor names it."
        : "its secret does not exist. svc ctl system doctor names it, and svc ctl secret set stores it.",
    );
  }

  /** Encrypts a value with the current key. Call it in change(), so that no rotation replaces the key before the write. */
  seal(name: string, value: string): Promise<SealedSecret> {
    return sealSecret(this.#options.key(), name, value);
  }

  /** Returns the id of the current key. Rows with another id are lost. */
  getKeyId(): Promise<string> {
    return computeSecretKeyId(this.#options.key());
  }

  async listLost(): Promise<string[]> {
    return await listLostSecrets(this.#options.db, await this.getKeyId());
  }

  /** Runs a change of secrets or of the key after all earlier ones. */
  change<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.catch(() => {}).then(work);
    this.#last = done;
    return done;
  }

  /** Builds the statements that encrypt every value with `key`. Lost values stay as they are. */
  async buildRotation(key: Uint8Array): Promise<Statement[]> {
    const { db } = this.#options;
    const statements: Statement[] = [];
    for (const row of await listAllSecrets(db)) {
      const value = await openSecret(this.#options.key(), row.name, row);
      if (value === null) continue;
      statements.push(...resealSecret(row, await sealSecret(key, row.name, value)));
    }
    return statements;
  }

  /** Calls `listener` after each change of a value or of the workers that may use it. */
  onChange(listener: (change: SecretChange) => Promise<void>): void {
    this.#listeners.add(listener);
  }

  /** Notifies the listeners of a change, and resolves when all have finished. */
  async announce(change: SecretChange): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener(change)));
  }
}

/** A changed secret and the workers that could use it before the change. */
interface SecretChange {
  name: string;
  workerIds: readonly string[];
}
