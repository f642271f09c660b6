import { expect, it } from "vitest";
import { Leftovers } from "../../src/runner/leftovers.ts";

it("what a runner left is ended by the next one in its directory, and nothing else is (reliability RUN-1)", async () => {
  const root = await Deno.makeTempDir({ prefix: "svc-test-" });
  await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
  const start = (runId: string) =>
    new Deno.Command("sleep", { args: ["300"], env: { SVC_RUN_ID: runId }, stdin: "null" }).spawn();
  const [left, own] = [crypto.randomUUID(), crypto.randomUUID()];
  const [leftover, stranger] = [start(left), start(own)];
  try {
    const before = new Leftovers(root);
    before.begin("one", left);
    before.begin("two", own);
    before.end("two");
    await new Leftovers(root).sweep();
    expect((await leftover.status).signal).toBe("SIGKILL");
    expect([...Deno.readDirSync(`${root}/open`)]).toEqual([]);
    expect(await Deno.readTextFile(`/proc/${stranger.pid}/comm`)).toContain("sleep");
  } finally {
    stranger.kill("SIGKILL");
    await stranger.status;
  }
});
