import { expect, it } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { svc } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { startRun } from "../../harness/model/workload.ts";

it("unusual output is kept byte for byte, and every reader can handle it: bad UTF-8, NUL, a line of 10 MB [CHD-7]", async () => {
  await using world = await World.serve();
  const { server, api, dataDir } = world;
  const bytesOf = async (path: string) => {
    const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${api.token}` } });
    expect(response.status).toBe(200);
    return new Uint8Array(await response.arrayBuffer());
  };
  const odd = await startRun(api, "bad-utf8");
  await waitUntil("the run ends", odd.ended);
  const printed = [0x6f, 0x6b, 0x20, 0xff, 0xfe, 0x20, 0xc3, 0x20, 0x00, 0x20, 0x65, 0x6e, 0x64, 0x0a];
  const log = await bytesOf(`/api/executions/${odd.id}/logs`);
  const at = log.indexOf(0xff) - 3;
  expect([...log.subarray(at, at + printed.length)]).toEqual(printed);
  expect(await api.call(`GET /api/executions/${odd.id}`)).toMatchObject({
    result: "ok \ufffd\ufffd \ufffd \ufffd end",
  });

  const long = await startRun(api, "long-line 10000000");
  await waitUntil("the run ends", long.ended);
  const line = await bytesOf(`/api/executions/${long.id}/logs`);
  expect(line.filter((byte) => byte === 0x78).length).toBeGreaterThanOrEqual(10_000_000);
  expect((await bytesOf(`/api/executions/${long.id}/logs?tail=2`)).length).toBeGreaterThan(10_000_000);
  for (const { id } of [odd, long]) {
    const called = await svc(["ctl", "execution", "logs", id], { dataDir });
    expect([called.code, called.err]).toEqual([0, ""]);
    expect(called.out.length).toBeGreaterThan(100);
  }
});
