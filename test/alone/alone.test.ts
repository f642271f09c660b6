// Tests of the compiled svc: SVC_PROGRAM=dist/svc make test ARGS=test/alone
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CompiledService, createPathWithoutRuntimes, PROGRAM, runBare } from "../harness/service/alone.ts";
import { createTempDir, startServer } from "../harness/service/process.ts";
import { listCommands, walkAllCommands } from "../harness/model/walk.ts";

const asRoot = Deno.uid() === 0;

describe.skipIf(PROGRAM === undefined)("the executable, without Deno and Node, in an empty directory", () => {
  const program = PROGRAM ?? "";

  it("passes every command of ctl", async () => {
    await using folder = await createTempDir();
    await using alone = await CompiledService.open({ XDG_CONFIG_HOME: folder.path });
    await walkAllCommands(alone);
    expect([...alone.used].sort()).toEqual((await listCommands()).sort());
    expect((await alone.svc(["health"])).out).toBe("ready\n");
    expect((await alone.svc(["completion", "bash"])).out).toContain("svc");
    expect((await alone.svc(["service", "print", "--user"])).err).toContain("HOME is not set");
    expect((await alone.svc(["service", "print", "--system"])).out).toContain(
      `ExecStart=${alone.program} serve`,
    );
  }, 360_000);

  it("is the svc that agents call", async () => {
    await using alone = await CompiledService.open();
    const config = join(alone.folder, "here", "config.yaml");
    await Deno.writeTextFile(
      config,
      `engines: { default: ask, ask: { kind: command, command: /bin/sh, args: ["-c", 'readlink -f "$(command -v svc)"; readlink -f "$SVC_CTL"; svc version --json'] } }\n`,
    );
    await alone.server.end("SIGTERM");
    const env = alone.env;
    await using server = await startServer({
      dataDir: alone.dataDir,
      cwd: join(alone.folder, "here"),
      env,
      bare: true,
      program: [alone.program],
    });
    expect(server.stderr).not.toContain("First start");
    await alone.svc(["ctl", "worker", "create", "-n", "Ask"]);
    const { out } = await alone.svc(["ctl", "chat", "@Ask who are you"]);
    const version = (await alone.svc(["version", "--json"])).out;
    expect(out).toBe(`${alone.program}\n${alone.program}\n${version}`);
  }, 180_000);

  it("runs without HOME, TMPDIR, terminal, in another zone and locale, with text of any script", async () => {
    const env = { TMPDIR: "/nowhere", TZ: "Pacific/Auckland", LC_ALL: "C" };
    await using alone = await CompiledService.open(env);
    expect((await alone.svc(["ctl", "worker", "create", "-n", "Größe 工人"])).code).toBe(0);
    expect((await alone.svc(["ctl", "chat", "@Größe 工人 ok übung 日本"])).out).toBe("übung 日本\n");
    const made = await alone.svc([
      ...["ctl", "task", "create", "--message-id", "zone", "--worker-id"],
      (await alone.svc(["ctl", "worker", "list", "-q"])).out.trim(),
      ...["--instruction", "ok", "--type", "scheduled", "--cron", "0 9 * * *", "--json"],
    ]);
    const next = new Date(JSON.parse(made.out).next_run_at);
    expect(next.toLocaleTimeString("en-GB", { timeZone: "Pacific/Auckland" })).toBe("09:00:00");
    // Closed streams, not empty ones.
    const closed = await runBare(
      ["/bin/sh", "-c", `exec "${alone.program}" ctl worker list <&- >&- 2>&-`],
      alone.folder,
      {
        ...alone.env,
        SVC_DATA_DIR: alone.dataDir,
      },
    );
    expect([0, 1]).toContain(closed.code);
    expect((await alone.svc(["health"])).code).toBe(0);
  }, 180_000);

  it("reports a read-only directory and a missing one", async () => {
    await using folder = await createTempDir();
    const path = await createPathWithoutRuntimes(folder.path);
    // Root can write anywhere, so the test uses a directory where no process can.
    const ran = await runBare([program, "serve"], "/proc", { PATH: path });
    expect(ran.code).toBe(1);
    expect(ran.err.trim().split("\n")).toHaveLength(1);
    expect(ran.err).toMatch(/^Cannot use the data directory \/proc\/data: .*\. Set data_dir/);
    const data = join(folder.path, "data");
    await using server = await startServer({
      dataDir: data,
      cwd: "/proc",
      env: { PATH: path, SVC_DATA_DIR: data, SVC_SERVER__PORT: "0" },
      bare: true,
      program: [program],
    });
    expect((await server.end("SIGTERM")).code).toBe(0);
  });

  it.skipIf(!asRoot)(
    "runs with a noexec TMPDIR or data directory, and reports in one line when both are noexec",
    async () => {
      await using folder = await createTempDir();
      const path = await createPathWithoutRuntimes(folder.path);
      const tried = async (noexec: string[]) => {
        const [data, temporary] = [join(folder.path, "data"), join(folder.path, "tmp")];
        const mounts = noexec.map((one) => `mount -t tmpfs -o noexec,nosuid tmpfs ${join(folder.path, one)}`);
        const script = [
          "set -e",
          `mkdir -p ${data} ${temporary}`,
          ...mounts,
          `exec timeout -s TERM 3 ${program} serve`,
        ].join("\n");
        const env = { PATH: path, SVC_DATA_DIR: data, TMPDIR: temporary, SVC_SERVER__PORT: "0" };
        return await runBare(["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script], "/", env);
      };
      for (const one of ["tmp", "data"]) {
        const ran = await tried([one]);
        // Exit code 124 means that timeout ended a serving process.
        expect([one, ran.err.includes("is ready at"), ran.code]).toEqual([one, true, 124]);
      }
      const neither = await tried(["tmp", "data"]);
      expect(neither.code).toBe(1);
      expect(neither.err.trim().split("\n")).toHaveLength(1);
      expect(neither.err).toMatch(/^Cannot open the database .*mount it without noexec/);
    },
    180_000,
  );

  it("leaves nothing in the temporary directory (decision 0005)", async () => {
    await using temporary = await createTempDir();
    await using alone = await CompiledService.open({ TMPDIR: temporary.path });
    expect((await alone.svc(["ctl", "worker", "list"])).code).toBe(0);
    expect([...Deno.readDirSync(temporary.path)].map((entry) => entry.name)).toEqual([]);
  });
});
