import { join } from "node:path";
import { expect, it } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";

const NOBODY = 65_534;

// The program of docs/how-to/isolate-agents.md for agents under a separate user. Only root can start a
// program as another user.
const PROGRAM = `#!/bin/sh
read -r wish
if [ "$wish" = stay ]; then echo here >&2; (trap '' INT TERM; sleep 300) & sleep 300; fi
try() { if "$@" > /dev/null 2>&1; then echo "could: $*"; else echo "could not: $*"; fi; }
echo "I am $(id -u):$(id -g) $(id -G)"
try cat "$DATA/secret.key"
try cat "$DATA/svc.db"
try ls "$DATA"
try ls "$OTHER_DIR"
try touch "$OTHER_DIR/evil"
try kill -0 "$SERVER"
try cat "/proc/$SERVER/environ"
try touch made-here
try sudo -n true
`;

it.skipIf(Deno.uid() !== 0)(
  "agents under a separate user reach neither the service's files nor its process nor each other's directories (docs/how-to/isolate-agents.md, level 1)",
  async () => {
    await using folder = await createTempDir();
    await Deno.chmod(folder.path, 0o755);
    const program = join(folder.path, "agent.sh");
    await Deno.writeTextFile(program, PROGRAM, { mode: 0o755 });
    const dirs = [join(folder.path, "one"), join(folder.path, "two")];
    for (const [index, dir] of dirs.entries()) {
      await Deno.mkdir(dir, { mode: 0o700 });
      await Deno.chown(dir, NOBODY - index, NOBODY - index);
    }
    const dataDir = join(folder.path, "data");
    const engine = (uid: number) => ({
      kind: "command",
      command: "setpriv",
      args: [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs", "--", program],
      env: {
        DATA: dataDir,
        OTHER_DIR: dirs[uid === NOBODY ? 1 : 0] ?? "",
        SERVER: String(Deno.pid),
        TMPDIR: "/tmp",
      },
    });
    await Deno.mkdir(dataDir, { mode: 0o700 });
    await using app = await openApp({
      dataDir,
      config: {
        engines: { default: "echo", one: engine(NOBODY), two: engine(NOBODY - 1) },
        limits: { stop_grace: "200ms" },
      },
    });
    for (const [index, name] of ["one", "two"].entries()) {
      const id = NOBODY - index;
      const said = await ask(app, name, dirs[index] ?? "", "tell");
      expect(said.split("\n")).toEqual([
        `I am ${id}:${id} ${id}`,
        `could not: cat ${dataDir}/secret.key`,
        `could not: cat ${dataDir}/svc.db`,
        `could not: ls ${dataDir}`,
        `could not: ls ${dirs[1 - index]}`,
        `could not: touch ${dirs[1 - index]}/evil`,
        `could not: kill -0 ${Deno.pid}`,
        `could not: cat /proc/${Deno.pid}/environ`,
        "could: touch made-here",
        "could not: sudo -n true",
      ]);
    }
    // The service can still end them.
    const worker = await app.call("POST /api/workers", { name: "stay", engine: "one", work_dir: dirs[0] });
    const task = { message_id: "m", worker_id: worker.id, instruction: "stay", type: "immediate" };
    await app.call("POST /api/tasks", task);
    await app.until("execution.started", 3);
    const [run] = await app.db.read<{ id: string; run_id: string }>(
      "select id, run_id from execution where status = 'running'",
    );
    await waitUntil(
      "the processes of the run have started",
      async () => (await findMarked(new Set([run?.run_id ?? ""]))).length >= 3,
    );
    await app.call(`POST /api/executions/${run?.id}/cancel`);
    expect(await findMarked(new Set([run?.run_id ?? ""]))).toEqual([]);
  },
);

async function ask(app: App, engine: string, work_dir: string, instruction: string): Promise<string> {
  const { id } = await app.call("POST /api/workers", { name: engine, engine, work_dir });
  await app.call("POST /api/tasks", { message_id: "m", worker_id: id, instruction, type: "immediate" });
  await app.settle();
  const [execution] = await app.call(`GET /api/workers/${id}/executions`);
  expect(execution).toMatchObject({ status: "completed" });
  return execution.result;
}
