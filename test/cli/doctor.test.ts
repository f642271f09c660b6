import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, svc } from "../harness/service/process.ts";
import { ctl } from "../harness/terminal.ts";

vi.setConfig({ testTimeout: 180_000 });

const asRoot = Deno.uid() === 0;

it("svc doctor checks this machine if no service runs, and --fix fixes safe problems (contract 8.17)", async () => {
  await using folder = await createTempDir();
  const data = join(folder.path, "data");
  const config = join(folder.path, "config.yaml");
  await Deno.writeTextFile(config, `data_dir: ${data}\nauth: {}\ndatabase:\n  auth_token: "s3cret"\n`, {
    mode: 0o644,
  });
  const run = async (...args: string[]) => {
    const env = { SVC_DATA_DIR: data };
    const ran = await svc(["doctor", "-c", config, ...args], { dataDir: folder.path, env });
    return { ...ran, checks: args.includes("--json") ? JSON.parse(ran.out).checks : [] };
  };
  const status = (checks: { name: string; status: string }[]) =>
    Object.fromEntries(checks.map((check) => [check.name, check.status]));
  const before = await run("--json");
  expect([before.code, before.err]).toEqual([1, ""]);
  expect(status(before.checks)).toMatchObject({
    service: "fail",
    config: "ok",
    secrets: "warn",
    data_dir: "warn",
    account: asRoot ? "warn" : "ok",
  });
  expect(before.out).not.toContain("s3cret");
  const fixed = await run("--fix");
  expect(fixed.err).toContain(`chmod go= ${config}\n`);
  expect(fixed.err).toContain(`created ${data}\n`);
  expect((await Deno.stat(config)).mode ?? 0).toSatisfy((mode: number) => (mode & 0o777) === 0o600);
  await Deno.writeTextFile(join(data, "secret.key"), "k", { mode: 0o644 });
  await Deno.chmod(data, 0o755);
  expect(status((await run("--json")).checks)).toMatchObject({
    permissions: "fail",
    secrets: "ok",
    data_dir: "ok",
  });
  await run("--fix");
  for (const path of [data, join(data, "secret.key")]) {
    expect((await Deno.stat(path)).mode ?? 0).toSatisfy((mode: number) => (mode & 0o077) === 0);
  }
  const after = await run();
  expect(after).toMatchObject({ code: 1, err: "svc: failed checks: service\n" });
  await Deno.writeTextFile(config, "limits: {max_concurrent_runs: many}\n");
  const wrong = await run("--json");
  expect(status(wrong.checks).config).toBe("fail");
});

it("doctor asks a reachable service, and checks this machine only for its own service", async () => {
  await using app = await openApp();
  const { out } = await ctl(app, "system doctor --json");
  expect(JSON.parse(out).checks.map(({ name }: { name: string }) => name)).toContain("stages");
  const env = { SVC_URL: "http://127.0.0.1:79", SVC_TOKEN: "x" };
  expect((await ctl(null, "system doctor", { env })).code).toBe(6);
  expect(await ctl(null, "system doctor --fix", { env })).toMatchObject({ code: 2, out: "" });
});
