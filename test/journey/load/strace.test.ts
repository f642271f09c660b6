import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntilQuiet } from "../../harness/service/client.ts";
import { createTempDir, svc } from "../../harness/service/process.ts";
import {
  buildTraceCommand,
  CAN_TRACE,
  readSystemCalls,
  type SystemCall,
} from "../../harness/service/strace.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Runs a traced server during a conversation with an upload, and stops it. */
async function traceConversation(
  trace: string,
  calls: string[],
  meanwhile: (world: World) => Promise<void>,
): Promise<{ dataDir: string; path: string }> {
  await using world = await World.serve({ program: buildTraceCommand(trace, calls) });
  const { dataDir, server, api } = world;
  const worker = await api.call("POST /api/workers", { name: "Ada" });
  const { id } = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  const form = new FormData();
  form.append("file", new Blob(["text"]), "note.txt");
  const { path } = await api.upload(`/api/local/sessions/${id}/media`, form);
  await api.call(`POST /api/local/sessions/${id}/messages`, { content: "say hello", media_path: path });
  await waitUntilQuiet(api);
  await meanwhile(world);
  const { pid } = JSON.parse(await Deno.readTextFile(join(dataDir, "server.json")));
  Deno.kill(pid, "SIGTERM");
  await server.child.status;
  return { dataDir, path };
}

it.skipIf(!CAN_TRACE)(
  "the server leaves its database files to libSQL: no other code opens them [DUR-6]",
  async () => {
    await using folder = await createTempDir();
    const calls = ["open", "openat", "openat2", "creat", "copy_file_range"];
    const trace = join(folder.path, "trace");
    const { dataDir } = await traceConversation(trace, calls, async ({ dataDir, server, api, path }) => {
      expect((await svc(["ctl", "system", "backup", path("b.tar")], { dataDir })).code).toBe(0);
      await api.call("GET /api/system/doctor");
      await (await fetch(`${server.url}/metrics`)).text();
    });
    const lines = (await Deno.readTextFile(trace)).split("\n");
    const opens = lines.filter((line) => line.includes(`${dataDir}/svc.db`));
    expect(opens.length).toBeGreaterThan(2);
    // Only SQLite opens files with O_NOFOLLOW.
    expect(opens.filter((line) => !line.includes("O_NOFOLLOW"))).toEqual([]);
    expect(lines.filter((line) => line.includes("copy_file_range") && line.includes("svc.db"))).toEqual([]);
  },
);

// A SIGKILL loses no written data, synced or not, so this test checks system calls and their order.
it.skipIf(!CAN_TRACE)(
  "a run's log is synced before its outcome, an upload before its name, and a commit before its acknowledgment [DUR-9, UPL-5, DUR-8]",
  async () => {
    await using folder = await createTempDir();
    let run = { id: "" };
    const names = ["pwrite64", "fdatasync", "fsync", "rename", "renameat", "renameat2"];
    const trace = join(folder.path, "trace");
    const { path } = await traceConversation(trace, names, async ({ api }) => {
      [run] = await api.call("GET /api/executions");
    });
    const calls = await readSystemCalls(trace);
    const isSync = ({ name }: SystemCall) => name === "fdatasync" || name === "fsync";
    const named = calls.find(({ name, args }) => name.startsWith("rename") && args.includes(`"${path}"`));
    const upload = calls.find((call) => isSync(call) && call.args.includes(".part>"));
    expect(upload?.ended).toBeLessThan(named?.began ?? NaN);

    const log = calls.find((call) => isSync(call) && call.args.includes(`${run.id}.log>`));
    const inWal = ({ args }: SystemCall) => args.includes("svc.db-wal>");
    // The page of the journal's new row.
    const outcome = calls.find((call) =>
      call.name === "pwrite64" && inWal(call) && call.args.includes("execution.completed")
    );
    expect(log?.ended).toBeLessThan(outcome?.began ?? NaN);

    // Without synchronous=full only a checkpoint syncs the WAL.
    expect(calls.filter((call) => isSync(call) && inWal(call)).length).toBeGreaterThan(10);
  },
);
