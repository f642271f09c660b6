import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE_AGENT } from "../harness/agents.ts";
import { PASSWORD, PASSWORD_HASH } from "../harness/app.ts";
import { client, quiet } from "../harness/client.ts";
import { startServer, SVC, svc, tempDir } from "../harness/process.ts";

const ENV = {
  SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH,
  SVC_ENGINES__DEFAULT: "fake",
  SVC_ENGINES__FAKE__KIND: "command",
  SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
};
const TRACES = await new Deno.Command("strace", { args: ["-e", "trace=none", "true"], stderr: "null" })
  .output().then(({ success }) => success, () => false);

it.skipIf(!TRACES)(
  "the server leaves its database's files to libSQL: whatever it does, nobody else opens them (reliability DUR-6)",
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir);
    const trace = join(folder.path, "trace");
    const program = [
      "strace",
      "-f",
      "-qq",
      "-e",
      "trace=open,openat,openat2,creat,copy_file_range",
      "-o",
      trace,
      ...SVC,
    ];
    await using server = await startServer({ dataDir, env: ENV, program });
    const api = await client(server.url, PASSWORD);
    const worker = await api.call("POST /api/workers", { name: "Ada" });
    const { id } = await api.call("POST /api/local/sessions", { worker_id: worker.id });
    const form = new FormData();
    form.append("file", new Blob(["text"]), "note.txt");
    const { path } = await api.upload(`/api/local/sessions/${id}/media`, form);
    await api.call(`POST /api/local/sessions/${id}/messages`, { content: "say hello", media_path: path });
    await quiet(api);
    expect((await svc(["ctl", "system", "backup", join(folder.path, "b.tar")], { dataDir })).code).toBe(0);
    await api.call("GET /api/system/doctor");
    await (await fetch(`${server.url}/metrics`)).text();
    const { pid } = JSON.parse(await Deno.readTextFile(join(dataDir, "server.json")));
    Deno.kill(pid, "SIGTERM");
    await server.child.status;
    const lines = (await Deno.readTextFile(trace)).split("\n");
    const opens = lines.filter((line) => line.includes(`${dataDir}/svc.db`));
    expect(opens.length).toBeGreaterThan(2);
    // SQLite opens without following a link at the end of the path; nothing else does.
    expect(opens.filter((line) => !line.includes("O_NOFOLLOW"))).toEqual([]);
    expect(lines.filter((line) => line.includes("copy_file_range") && line.includes("svc.db"))).toEqual([]);
  },
  60_000,
);
