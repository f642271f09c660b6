import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box.ts";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";

/** The settings that boxes need when the tests run as root. */
const box = Deno.uid() === 0 ? { user: "nobody" } : {};
const fault = await findBoxFault({ box: { user: "", ...box } });

async function run(app: App, worker: { id: string }) {
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "x" });
  await app.settle();
  return (await app.call("GET /api/executions"))[0];
}

it.skipIf(fault !== null)(
  `a worker in a box runs its program in its work directory, with svc, and sees no data directory [BOX-1]${
    fault === null ? "" : ` (skipped: ${fault})`
  }`,
  async () => {
    const script = "svc --version; pwd; touch made; ls $DATA_DIR";
    await using app = await openApp({
      config: { isolation: { box }, engines: { default: "sh", sh: buildShellEngine(script) } },
    });
    const worker = await app.call("POST /api/workers", {
      name: "Ada",
      isolation: { box: { network: "host" } },
    });
    expect(worker.isolation_effective).toEqual({ box: { network: "host" } });
    const { status, result, error } = await run(app, worker);
    expect([status, error]).toEqual(["completed", ""]);
    expect(result).toContain(`${worker.work_dir}\n`);
    expect(result).toMatch(/^svc \d/);
    await Deno.stat(`${worker.work_dir}/made`);
  },
);
