import { expect, it } from "vitest";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";

const FLEET = `
departments: [{ name: News }]
workers:
  - { name: Ada, engine: echo, departments: [News] }
  - { name: Bob, engine: echo }
memory: { tone: friendly }
`;
const OLD = "workers: [{ name: Old, engine: echo }]";

it("a kill in the middle of an apply leaves all of it or nothing, and a second apply completes it [FLT-1]", async () => {
  await using folder = await createTempDir();
  const file = `${folder.path}/fleet.yaml`;
  await Deno.writeTextFile(file, FLEET);
  const dataDir = `${folder.path}/data`;
  await Deno.mkdir(dataDir);
  const ctl = (...args: string[]) => svc(["ctl", ...args], { dataDir });
  const names = async () =>
    JSON.parse((await ctl("worker", "list", "--json")).out).map(({ name }: { name: string }) => name);

  const prepared = await startServer({ dataDir });
  await Deno.writeTextFile(`${folder.path}/old.yaml`, OLD);
  expect((await ctl("apply", "-f", `${folder.path}/old.yaml`)).out).toBe("+ worker Old\n");
  await prepared.end("SIGTERM");

  for (const [point, left] of [["pre", ["Old"]], ["post", ["Bob", "Ada"]]] as const) {
    const server = await startServer({ dataDir, env: { SVC_FAULT: `accept.${point}-commit:1:kill` } });
    const { code } = await ctl("apply", "-f", file, "--prune", "--reconnect", "0s");
    expect([point, code === 0]).toEqual([point, false]);
    expect((await server.end("SIGKILL")).signal).toBe("SIGKILL");
    const again = await startServer({ dataDir });
    expect([point, await names()]).toEqual([point, left]);
    await again.end("SIGTERM");
  }

  const server = await startServer({ dataDir });
  expect(await ctl("apply", "-f", file, "--prune")).toMatchObject({ code: 0, out: "" });
  expect(await ctl("diff", "-f", file)).toMatchObject({ code: 0, out: "" });
  expect((await ctl("run", "Ada", "hello")).out).toBe("hello\n");
  const exported = (await ctl("export")).out;
  expect(exported).toContain("- name: Ada\n    engine: echo\n    departments:\n      - News\n");
  await Deno.writeTextFile(file, exported.replace("friendly", "formal"));
  expect(await ctl("diff", "-f", file)).toMatchObject({
    code: 8,
    out: '~ memory tone\n    value: "friendly" -> "formal"\n',
  });
  await server.end("SIGTERM");
});
