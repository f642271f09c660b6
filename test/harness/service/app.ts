import { join } from "node:path";
import { expect } from "vitest";
import { z } from "zod";
import { systemClock } from "../../../src/base/clock.ts";
import { configSchema, type LoadedConfig } from "../../../src/config/schema.ts";
import { resolveConfigPath } from "../../../src/config/file.ts";
import { Server, type ServerOptions } from "../../../src/boot/server.ts";
import { OPERATOR_KEY_TTL_S, OPERATOR_KEY_VERSION, signToken } from "../../../src/base/token.ts";
import { WAKEUP } from "../../../src/base/wakeups.ts";
import { Database } from "../../../src/store/db/database.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { findBreach } from "../model/contract.ts";
import type { EventKind } from "../../../src/domain/call/vocabulary.ts";
import { WAIT_MAX_MS } from "../wait.ts";
import type { Json } from "./client.ts";
import { createTempDir } from "./process.ts";

/** Keys of config.yaml; parsing checks `engines`. */
export type TestSettings = Omit<z.input<typeof configSchema>, "engines"> & {
  engines?: Record<string, unknown>;
};

export interface AppOptions extends ServerOptions {
  /** Keys of config.yaml; by default port 0 and a fresh data directory. */
  config?: TestSettings;
  dataDir?: string;
  password?: string;
  /** Keeps the database in memory, without syncing. */
  inMemory?: boolean;
}

/** The operator's password in tests; its hash has the lowest cost. */
export const PASSWORD = "correct horse";
export const PASSWORD_HASH =
  "$scrypt$ln=4,r=8,p=1$mXpDP+PBVc6YKyWTmRHhEA$ppxUQaTdgPTSzytgW9hvHoiR4nMtrL0E3lUD50PRx+U";

export interface Reply<T = unknown> {
  status: number;
  headers: Headers;
  body: T;
}

/** A service in this process on its own data directory; stopped and removed on disposal. */
export class App {
  /** The number of times that the test itself makes the database busy. */
  busyExpected = 0;
  readonly #removeData: boolean;
  #stopped = false;

  constructor(readonly server: Server, readonly dataDir: string, removeData: boolean) {
    this.#removeData = removeData;
  }

  get url(): string {
    return this.server.url;
  }

  get db() {
    return this.server.parts.db;
  }

  /** Signs a token as ctl does. */
  token(): Promise<string> {
    const { authority, clock } = this.server.parts;
    const claims = {
      typ: "access" as const,
      sub: "operator:admin",
      scope: "*:*",
      ver: OPERATOR_KEY_VERSION,
      instance: authority.instance,
    };
    return signToken(authority.key, claims, OPERATOR_KEY_TTL_S, clock.now());
  }

  /** Sends a request as the operator and returns the response. */
  async send(route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply<Json>> {
    const [method = "GET", path = "/"] = route.split(/ (.*)/);
    const response = await this.server.fetch(
      new Request(new URL(path, "http://localhost"), {
        method,
        headers: {
          authorization: `Bearer ${await this.token()}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
    const text = await response.text();
    const contentType = response.headers.get("content-type") ?? "";
    const reply = {
      status: response.status,
      headers: response.headers,
      body: /json/.test(contentType) ? JSON.parse(text) : text,
    };
    await this.#checkContract(method, path, body, reply);
    return reply;
  }

  // Every exchange of every test has to match the OpenAPI document (contract 5).
  async #checkContract(method: string, path: string, body: unknown, reply: Reply): Promise<void> {
    const said = await findBreach({
      method,
      path: new URL(path, "http://localhost").pathname,
      requestBody: typeof body === "string" ? undefined : body,
      status: reply.status,
      contentType: reply.headers.get("content-type") ?? "",
      responseBody: reply.body,
    });
    expect(said, "the OpenAPI document").toBe("");
  }

  /** Sends a request that must succeed and returns its body. */
  async call(route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Json> {
    const reply = await this.send(route, body, headers);
    expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300);
    return reply.body;
  }

  /** Resolves when no work is due and no run is in progress. Throws after `timeoutMs`. */
  async settle(timeoutMs = WAIT_MAX_MS): Promise<void> {
    const { db, wakeups, clock } = this.server.parts;
    const wakeup = wakeups.listen(WAKEUP.journal);
    const began = performance.now();
    try {
      while (performance.now() - began < timeoutMs) {
        const row = await db.first<{ open: number }>(
          `select (select count(*) from inbound_message where status in ('received', 'feeding'))
            + (select count(*) from task
               join worker on worker.id = worker_id and worker.paused = 0
               where status = 'pending' and held = '' and open_parents = 0 and due_at <= ?)
            + (select count(*) from execution where status in ('pending', 'running'))
            + (select count(*) from outbound_message where status = 'failed' and due_at <= ?) as open`,
          [clock.now(), clock.now()],
        );
        const idle = this.server.stages.every((stage) => stage.idle) && this.server.dispatcher.running === 0;
        if (row?.open === 0 && idle) return;
        await wakeup.next(systemClock, 20);
      }
    } finally {
      wakeup.close();
    }
    throw new Error("The service did not settle");
  }

  /** Does `work`, and resolves when it listens for a wakeup, so its wait or stream is open. */
  async listening<T>(work: () => Promise<T>): Promise<{ done: Promise<T> }> {
    const { wakeups } = this.server.parts;
    const before = wakeups.size;
    const done = work();
    while (wakeups.size <= before) await new Promise((resolve) => setTimeout(resolve, 2));
    return { done };
  }

  /** Resolves when the journal holds `count` events of this kind. */
  async until(kind: EventKind, count = 1, timeoutMs = WAIT_MAX_MS): Promise<void> {
    const { db, wakeups } = this.server.parts;
    const wakeup = wakeups.listen(WAKEUP.journal);
    const began = performance.now();
    try {
      while (performance.now() - began < timeoutMs) {
        const row = await db.first<{ total: number }>(
          "select count(*) as total from journal where kind = ?",
          [kind],
        );
        if ((row?.total ?? 0) >= count) return;
        await wakeup.next(systemClock, 100);
      }
    } finally {
      wakeup.close();
    }
    throw new Error(`There was no ${kind} in ${timeoutMs} ms`);
  }

  /** Wakes a stage and resolves after its next idle round. */
  async runStage(name: string): Promise<void> {
    const stage = this.server.stages.find((one) => one.name === name);
    const rounds = stage?.rounds ?? 0;
    stage?.wake();
    while ((stage?.rounds ?? 0) <= rounds || !stage?.idle) {
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.server.hurry();
    await this.server.stop();
    // The service never waits for its own lock, in any test [DBF-5].
    expect(this.db.busy).toBeLessThanOrEqual(this.busyExpected);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.#removeData) await Deno.remove(this.dataDir, { recursive: true }).catch(() => {});
  }
}

/** Builds a configuration as loadConfig() returns it. */
export function buildTestConfig(
  dataDir: string,
  config: TestSettings = {},
  password = "",
): LoadedConfig {
  const parsed = configSchema.parse({
    ...config,
    data_dir: dataDir,
    server: { port: 0, ...config.server },
    bee: { quiet_window: "0ms", ...config.bee },
    auth: { ...(password === "" ? { password_hash: PASSWORD_HASH } : {}), ...config.auth },
  });
  const url = parsed.database.url === "" ? `file:${join(dataDir, "svc.db")}` : parsed.database.url;
  parsed.database.url = url;
  parsed.files_dir ||= dataDir;
  parsed.backup.dir ||= join(dataDir, "backups");
  for (const [name, engine] of Object.entries(parsed.engines)) {
    if (typeof engine !== "string") engine.kind ??= name as "echo";
    if (typeof engine !== "string" && engine.command.includes("/")) {
      engine.command = resolveConfigPath(Deno.cwd(), engine.command);
    }
  }
  const source = { path: null, base: Deno.cwd(), document: null, position: () => ({ line: 0, column: 0 }) };
  return { config: parsed, path: null, password, source, fromEnvironment: new Map() };
}

let emptyDatabase: Promise<Uint8Array> | null = null;

/** Returns the file of a database with the schema and no rows. */
function loadEmptyDatabase(): Promise<Uint8Array> {
  return emptyDatabase ??= (async () => {
    await using folder = await createTempDir();
    const path = join(folder.path, "svc.db");
    const db = await Database.open(`file:${path}`);
    await migrate(db, Date.now());
    await db.close();
    return await Deno.readFile(path);
  })();
}

/** Starts a service for a test. */
export async function openApp(options: AppOptions = {}): Promise<App> {
  const dataDir = options.dataDir ?? await Deno.makeTempDir({ prefix: "svc-test-" });
  const loaded = buildTestConfig(dataDir, options.config, options.password);
  const path = join(dataDir, "svc.db");
  if (options.inMemory) loaded.config.database.url = ":memory:";
  // Creating the schema took half of the processor time of a start. The tests of the first start do it.
  else if (options.dataDir === undefined && loaded.config.database.url === `file:${path}`) {
    await Deno.writeFile(path, await loadEmptyDatabase());
  }
  // Warm processes must not depend on the machine's memory; a test sets them.
  const server = await Server.open(loaded, { memoryBytes: 0, ...options });
  await server.start();
  return new App(server, dataDir, options.dataDir === undefined);
}
