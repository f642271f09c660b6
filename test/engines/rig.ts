import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { type App, type AppOptions, openApp } from "../harness/service/app.ts";
import { listWorkerProcesses } from "../harness/model/marked.ts";
import { ROOT } from "../harness/house/tree.ts";
import { waitUntil } from "../harness/wait.ts";
import { type Model, startModel } from "./model.ts";
import { buildPinProgram, type Pin } from "./pins.ts";
import type { GatewayKind } from "../../src/domain/call/vocabulary.ts";
import type { Json } from "../harness/service/client.ts";

const KEY = "stub-key-0123456789";

/** Points a real CLI at the scripted model, as an operator would configure it. */
export function buildModelSettings(
  kind: string,
  url: string,
  acp = false,
): { env: Record<string, string>; args?: string[]; model?: string } {
  const v1 = `${url}/v1`;
  switch (kind) {
    case "claude":
      return { env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY } };
    case "codex":
      return { env: { CODEX_API_KEY: KEY }, args: ["-c", `openai_base_url="${v1}"`] };
    case "gemini":
      return { env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: KEY }, model: "gemini-2.5-pro" };
    case "qwen":
      return { env: { OPENAI_BASE_URL: v1, OPENAI_API_KEY: KEY, OPENAI_MODEL: "stub-model" } };
    case "copilot":
      return {
        env: {
          COPILOT_PROVIDER_BASE_URL: v1,
          COPILOT_PROVIDER_API_KEY: KEY,
          COPILOT_MODEL: "gpt-4.1",
          COPILOT_OFFLINE: "true",
        },
      };
    case "goose":
      return {
        env: { GOOSE_PROVIDER: "openai", GOOSE_MODEL: "stub", OPENAI_HOST: url, OPENAI_API_KEY: KEY },
      };
    default:
      return {
        env: { OPENCODE_CONFIG_CONTENT: formatOpencodeConfig(v1, acp ? "stub/m" : undefined) },
        model: "stub/m",
      };
  }
}

/** Formats the configuration of opencode; `model` if it is not an argument. */
function formatOpencodeConfig(baseURL: string, model?: string): string {
  const models = { m: { limit: { context: 200_000, output: 8_000 }, cost: { input: 3, output: 15 } } };
  const options = { baseURL, apiKey: KEY };
  return JSON.stringify({
    ...(model === undefined ? {} : { model, small_model: model }),
    provider: { stub: { npm: "@ai-sdk/openai-compatible", options, models } },
  });
}

/** The provider's key behind the gateway of a rig. */
export const GATEWAY_SECRET = "sk-canary-9876543210-abcdefgh";

/** The settings of a real CLI that reaches the scripted model through the gateway `model`. */
async function buildGatewaySettings({ kind }: Pin): Promise<object> {
  const home = join(ROOT, ".cache", "engines", "home");
  await Deno.mkdir(home, { recursive: true });
  const own: Record<string, { env?: Record<string, string>; model?: string }> = {
    qwen: { env: { OPENAI_MODEL: "stub-model" } },
    copilot: { env: { COPILOT_MODEL: "gpt-4.1", COPILOT_OFFLINE: "true" } },
    goose: { env: { GOOSE_MODEL: "stub" } },
    opencode: { model: "openai/gpt-5" },
    gemini: { model: "gemini-2.5-pro" },
  };
  const { env = {}, model = "" } = own[kind] ?? {};
  return { gateway: "model", args: [], model, env: { HOME: home, ...env } };
}

interface EngineWishes {
  permissions?: "read" | "edit" | "ask" | "full";
  askTimeout?: string;
  timeout?: string;
  env?: Record<string, string>;
  /** Arguments that select the Agent Client Protocol instead of the adapter's own protocol. */
  acp?: string[];
}

/** Builds the configuration of a real CLI that uses the scripted model. */
export async function buildEngineSettings(
  pin: WarmPin,
  modelUrl: string,
  wishes: EngineWishes = {},
): Promise<object> {
  const { permissions = "full", timeout = "100s", acp, askTimeout } = wishes;
  const { env, ...own } = buildModelSettings(pin.kind, modelUrl, acp !== undefined);
  const rest = acp === undefined ? own : { kind: "acp", args: acp };
  // A separate home, kept between tests because some CLIs unpack themselves there.
  const home = join(ROOT, ".cache", "engines", "home");
  await Deno.mkdir(home, { recursive: true });
  const command = buildPinProgram(pin);
  const warm = pin.warm === undefined ? {} : { warm: pin.warm };
  const asking = askTimeout === undefined ? {} : { ask_timeout: askTimeout };
  return {
    command,
    permissions,
    timeout,
    ...asking,
    ...warm,
    ...rest,
    env: { HOME: home, ...env, ...wishes.env },
  };
}

interface RigOptions extends EngineWishes {
  /** The kind of the gateway through which the engine reaches the model, instead of by a key. */
  gateway?: GatewayKind;
  /** Makes the engine the coordinator, with two workers that repeat their instructions. */
  bee?: boolean;
  clock?: Clock;
  /** Runs the worker in a box with this network. */
  box?: "host" | "none";
}

/** A CLI, with its settings if it stays open between turns. */
export type WarmPin = Pin & { warm?: object };

/** An execution with its log. */
export interface ExecutionWithLog {
  execution: Json;
  log: string;
}

/** A service with one real engine, one worker, and one conversation. */
export class Rig implements AsyncDisposable {
  app: App;
  readonly model: Model;
  readonly worker: Json;
  readonly session: Json;
  readonly kind: string;
  readonly #options: AppOptions;
  readonly #staysOpen: boolean;

  private constructor(pin: WarmPin, options: AppOptions, app: App, model: Model, made: Record<string, Json>) {
    const { worker, session } = made;
    this.kind = pin.kind;
    this.#staysOpen = pin.warm !== undefined;
    this.#options = options;
    this.app = app;
    this.model = model;
    this.worker = worker;
    this.session = session;
  }

  static async open(pin: WarmPin, options: RigOptions = {}): Promise<Rig> {
    const model = await startModel();
    const engine = await buildEngineSettings(pin, model.url, options);
    const { gateway: kind } = options;
    if (kind !== undefined) Object.assign(engine, await buildGatewaySettings(pin));
    const engines = { default: options.bee ? "echo" : pin.kind, [pin.kind]: engine };
    const gateways = kind === undefined ? {} : {
      model: {
        ...{ kind, secret: "model-key", upstream: model.url },
        ...(kind === "http" ? { header: "x-goog-api-key: {secret}", allow: ["POST /**", "GET /**"] } : {}),
      },
    };
    const bee = options.bee ? { bee: { engine: pin.kind, timeout: "90s", max_attempts: 1 } } : {};
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const { clock } = options;
    const isolation = BOX_SETTINGS;
    const wanted = {
      dataDir,
      config: { engines, gateways, isolation, ...bee },
      ...(clock === undefined ? {} : { clock }),
    };
    const app = await openApp(wanted);
    if (kind !== undefined) await app.call("PUT /api/secrets/model-key", { value: GATEWAY_SECRET });
    const worker = await app.call("POST /api/workers", {
      name: "Ada",
      isolation: options.box === undefined ? null : { box: { network: options.box } },
    });
    if (options.bee) await app.call("POST /api/workers", { name: "Grace" });
    const session = await app.call("POST /api/local/sessions", options.bee ? {} : { worker_id: worker.id });
    return new Rig(pin, wanted, app, model, { worker, session });
  }

  /** Stops the service in order and starts it again on the same data. */
  async restart(): Promise<void> {
    await this.app.stop();
    this.app = await openApp(this.#options);
  }

  async send(content: string): Promise<void> {
    await this.app.call(`POST /api/local/sessions/${this.session.id}/messages`, { content });
  }

  /** Sends a message, waits for its outcome, and returns the id of the message. */
  async ask(content: string): Promise<string> {
    const sent = await this.app.call(`POST /api/local/sessions/${this.session.id}/messages`, { content });
    await this.app.settle(170_000);
    return sent.message_id;
  }

  async say(content: string): Promise<ExecutionWithLog> {
    await this.send(content);
    await this.app.settle(170_000);
    return await this.latest();
  }

  async latest(): Promise<ExecutionWithLog> {
    const [execution] = await this.app.call("GET /api/executions");
    return { execution, log: await this.app.call(`GET /api/executions/${execution.id}/logs`) };
  }

  contexts(): Promise<Json> {
    return this.app.call(`GET /api/contexts?session_key=local:${this.session.id}`);
  }

  file(name: string): string {
    return join(this.worker.work_dir, name);
  }

  async untilFile(name: string): Promise<void> {
    await waitUntil(`${name} exists`, () => exists(this.file(name)));
  }

  /**
   * Lists the processes with the mark of any run. For an engine that stays open, lists all processes of the worker except one idle process.
   */
  async leftovers(): Promise<number[]> {
    if (this.#staysOpen) {
      await this.app.server.parts.engines.release(this.worker.id);
      return listWorkerProcesses(this.worker.id);
    }
    const rows = await this.app.db.read<{ run_id: string }>("select run_id from execution");
    return await findMarked(new Set(rows.map((row) => row.run_id)));
  }

  /** Deletes everything that the engine keeps for the worker. */
  async forget(): Promise<void> {
    await this.app.server.parts.engines.release(this.worker.id);
    await Deno.remove(join(this.app.dataDir, "state", this.worker.id), { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
    await Deno.remove(this.app.dataDir, { recursive: true }).catch(() => {});
    await this.model[Symbol.asyncDispose]();
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
