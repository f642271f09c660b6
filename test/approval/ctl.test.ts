import { expect, it } from "vitest";
import { countRuns, openAskingService, waitForCalls } from "../harness/fakes/asking_claude.ts";
import { ctl } from "../harness/terminal.ts";

it("svc ctl lists a tool call, shows all of its arguments, allows it, and lists what the conversation allows [APV-1]", async () => {
  await using one = await openAskingService();
  const { app } = one;
  const path = one.path("a");
  const words = `${"x".repeat(2_000)} middle ${"y".repeat(2_000)}`;
  const run = async (line: string) => {
    const { code, out, err } = await ctl(app, line);
    expect(code, err).toBe(0);
    return out;
  };
  await one.call(`Write ${path} ${words}`);
  const [first] = await waitForCalls(app);
  expect(await run("question list --status open")).toContain(first?.id);
  const shown = await run(`question get ${first?.id}`);
  for (const part of ["Write", path, words, "Allow in this conversation"]) expect(shown).toContain(part);
  await run(`question answer ${first?.id} Allow`);
  await app.settle();
  expect(await countRuns(path)).toBe(1);
  expect(await run(`session approvals --session-key ${one.sessionKey}`)).not.toContain(path);

  await one.call(`Write ${path}`);
  const [second] = await waitForCalls(app);
  await run(`question answer ${second?.id} 'Allow in this conversation'`);
  await app.settle();
  expect(await countRuns(path)).toBe(2);
  const allowed = await run(`session approvals --session-key ${one.sessionKey}`);
  for (const part of ["Ada", "claude", "Write", path, "user:admin"]) expect(allowed).toContain(part);
});
