import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { buildFakeEnvironment } from "../../harness/fakes/agents.ts";
import { type Client, openClient, waitUntilQuiet } from "../../harness/service/client.ts";
import { createTempDir, type ServerProcess, startServer, svc } from "../../harness/service/process.ts";
import {
  buildTraceCommand,
  CAN_TRACE,
  readSystemCalls,
  type SystemCall,
} from "../../harness/service/strace.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Runs a traced server during a conversation with an upload, and stops it. */
async function traceConversation(
  folder: string,
  calls: string[],
  meanwhile: (server: ServerProcess, api: Client) => Promise<void>,
): Promise<{ dataDir: string; trace: string; path: string }> {
  const [dataDir, trace] = [join(folder, "data"), join(folder, "trace")];
  await Deno.mkdir(dataDir);
  await using server = await startServer({
    dataDir,
    env: buildFakeEnvironment(),
    program: buildTraceCommand(trace, calls),
  });
  const api = await openClient(server.url);
  const worker = await api.call("POST /api/workers", { name: "Ada" });
  const { id } = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  const form = new FormData();
  form.append("file", new Blob(["text"]), "note.txt");
  const { path } = await api.upload(`/api/local/sessions/${id}/media`, form);
  await api.call(`POST /api/local/sessions/${id}/messages`, { content: "say hello", media_path: path });
  await waitUntilQuiet(api);
  await meanwhile(server, api);
  const { pid } = JSON.parse(await Deno.readTextFile(join(dataDir, "server.json")));
  Deno.kill(pid, "SIGTERM");
  await server.child.status;
  return { dataDir, trace, path };
}

it.skipIf(!CAN_TRACE)(
  "the server leaves its database files to libSQL: no other code opens them [DUR-6]",
  async () => {
    await using folder = await createTempDir();
    const calls = ["open", "openat", "openat2", "creat", "copy_file_range"];
    const { dataDir, trace } = await traceConversation(folder.path, calls, async (server, api) => {
      const options = { dataDir: join(folder.path, "data") };
      expect((await svc(["ctl", "system", "backup", join(folder.path, "b.tar")], options)).code).toBe(0);
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
    const { trace, path } = await traceConversation(folder.path, names, async (_server, api) => {
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
