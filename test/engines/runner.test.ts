import { join } from "node:path";
import { expect, it } from "vitest";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { type App, openApp } from "../harness/service/app.ts";
import {
  createRemoteWorker,
  type RunnerProcess,
  startRunner,
  waitUntilOnline,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";
import { type Model, startModel } from "./model.ts";
import { describePins, selectPins } from "./pins.ts";
import { buildEngineSettings, type WarmPin } from "./rig.ts";
import type { Json } from "../harness/service/client.ts";

// Real CLIs on a runner with a scripted model. `make test-engines` sets the variable.
const SHOWN = ["claude", "codex"];
const engines = selectPins().filter(({ kind }) => SHOWN.includes(kind));
/** Each engine, and again as a warm engine if it can stay open. */
const WAYS = engines.flatMap((pin): (WarmPin & { way: string })[] => [
  { ...pin, way: "a turn each", warm: { max: 0 } },
  ...(pin.kind === "claude" ? [{ ...pin, way: "staying open", warm: {} }] : []),
]);
// An engine may need a minute to start on a busy machine.
const PATIENCE_MS = 600_000;

/** A service that has only `echo`, a runner with a real engine, and a conversation with a worker on it. */
class Elsewhere implements AsyncDisposable {
  readonly worker: string;
  readonly session: string;
  readonly #model: Model;

  private constructor(
    readonly app: App,
    readonly runner: RunnerProcess,
    model: Model,
    ids: [worker: string, session: string],
  ) {
    this.#model = model;
    [this.worker, this.session] = ids;
  }

  static async open(pin: WarmPin): Promise<Elsewhere> {
    const [model, app] = await Promise.all([startModel(), openApp()]);
    const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
    const engine = await buildEngineSettings(pin, model.url, { timeout: "9m" });
    const config = `engines: ${JSON.stringify({ default: pin.kind, [pin.kind]: engine })}\n`;
    const runner = await startRunner({ token, url: app.url, root: join(app.dataDir, "r1"), config });
    await waitUntilOnline(app, "r1");
    const worker = await createRemoteWorker(app, pin.kind);
    const { id } = await app.call("POST /api/local/sessions", { worker_id: worker });
    return new Elsewhere(app, runner, model, [worker, id]);
  }

  async upload(name: string, content: string): Promise<Json> {
    const body = new FormData();
    body.set("file", new File([content], name));
    const headers = { authorization: `Bearer ${await this.app.token()}` };
    const to = `${this.app.url}/api/local/sessions/${this.session}/media`;
    return await (await fetch(to, { method: "POST", headers, body })).json();
  }

  async say(content: string, more: object = {}): Promise<{ execution: Json; log: string }> {
    const { app } = this;
    await app.call(`POST /api/local/sessions/${this.session}/messages`, { content, ...more });
    await app.settle(PATIENCE_MS);
    const [execution] = await app.call(`GET /api/executions?worker_id=${this.worker}`);
    return { execution, log: await app.call(`GET /api/executions/${execution.id}/logs`) };
  }

  /** Reads a file that the agent wrote into its work directory on the runner. */
  made(name: string): Promise<string> {
    return Deno.readTextFile(join(this.runner.root, "workers", this.worker, name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runner[Symbol.asyncDispose]();
    await this.app[Symbol.asyncDispose]();
    await this.#model[Symbol.asyncDispose]();
  }
}

// The agent reads the file's path from its own context.
const READ_THE_FILE = `cat "$(sed -n 's/.*"path": "\\([^"]*\\)".*/\\1/p' "$SVC_CONTEXT_FILE")" > seen.txt`;
const SEND_A_FILE =
  'echo "made on the runner" > report.txt && svc ctl message send --message-id "$SVC_MESSAGE_ID" --media-path report.txt';

describePins("$kind $version on a runner, $way (contract 18)", WAYS, 2 * PATIENCE_MS, (pin) => {
  it("gets a file, uses svc and sends a file; then it continues its session, and calls tools over MCP", async () => {
    await using at = await Elsewhere.open(pin);
    const { app, runner, worker, session } = at;
    const { path } = await at.upload("note.txt", "what is in it");
    const words = `${READ_THE_FILE} && svc ctl whoami > who.txt && ${SEND_A_FILE}`;
    const first = await at.say(`This is [[id:first-word]]. [[tool:${words}]] [[text:I am here.]]`, {
      media_path: path,
    });
    expect(first.execution, first.log).toMatchObject({
      status: "completed",
      engine: pin.kind,
      attempt: 1,
      result: expect.stringMatching(/^I am here\./),
      usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
    });
    expect(await at.made("seen.txt"), first.log).toBe("what is in it");
    expect(await at.made("who.txt"), first.log).toContain(`worker:${worker}`);
    const messages = await app.call(`GET /api/local/sessions/${session}/messages`);
    expect(messages.slice(1), first.log).toMatchObject([
      { role: "bee", media: { name: expect.stringMatching(/report\.txt$/) } },
      { role: "bee", content: first.execution.result },
    ]);
    const stored = messages[1].media.path.split("/").at(-1);
    expect(await app.call(`GET /api/local/sessions/${session}/media/${stored}`)).toBe("made on the runner\n");

    const second = await at.say("What did I say? [[call:worker_list {}]] [[recall]]");
    expect(second.execution, second.log).toMatchObject({
      status: "completed",
      session_id: first.execution.session_id,
      result: expect.stringMatching(/recall: first-word \| user texts: 2/),
    });
    // The outcome of the tool, without the agent's own task.
    const { name, home } = await app.call(`GET /api/workers/${worker}`);
    expect(second.log).toContain(name);
    expect([home, first.execution.session_id === ""]).toEqual(["r1", false]);

    // The service's machine has no trace of the run, and the runner's keeps only the worker's directory.
    const rows = await app.db.read<{ run_id: string }>("select run_id from execution");
    expect(await findMarked(new Set(rows.map(({ run_id }) => run_id)))).toEqual([]);
    await expect(Deno.stat(join(app.dataDir, "workers", worker))).rejects.toThrow(Deno.errors.NotFound);
    // The runner removes its notes of a run after the service has the outcome.
    for (const folder of ["open", "files"]) {
      await waitUntil(folder, () => [...Deno.readDirSync(join(runner.root, folder))].length === 0);
    }
    expect(runner.stderr).not.toMatch(/error|refused/i);
  });
});
