import { expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { ctl } from "../../harness/terminal.ts";

const PROGRAM = "cat >/dev/null; printf '\\033[31mred\\033[0m \\033[1mwords\\033[0m\\n'";
const COLORFUL = { kind: "command", command: "sh", args: ["-c", PROGRAM] };
const BREAKS = { kind: "command", command: "sh", args: ["-c", `${PROGRAM} >&2; exit 3`] };

it("results, errors and messages have no terminal codes, the log keeps them", async () => {
  await using app = await openApp({ config: { engines: { colorful: COLORFUL, breaks: BREAKS } } });
  for (const engine of ["colorful", "breaks"]) {
    const { id: worker_id } = await app.call("POST /api/workers", { name: engine, engine });
    await app.call("POST /api/tasks", { message_id: "m", worker_id, instruction: "go", type: "immediate" });
    await app.settle();
    const [{ id, result, error }] = await app.call(`GET /api/executions?worker_id=${worker_id}`);
    const text = engine === "breaks" ? error : result;
    expect(text).toMatch(/red words$/);
    expect(text).not.toContain("\u001b");
    expect(await app.call(`GET /api/executions/${id}/logs`)).toContain("\u001b[31mred");
  }
  const [inbox] = await app.call("GET /api/inbox");
  expect(inbox.detail).toMatch(/red words$/);
  const { id } = await app.call("POST /api/local/sessions", { name: "x" });
  const { message_id } = await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
  await app.settle();
  const stdin = "\u001b[32mgreen\u001b[0m leaves\n";
  expect((await ctl(app, `message send --message-id ${message_id} --stdin`, { stdin })).code).toBe(0);
  await app.settle();
  const said = await app.call(`GET /api/local/sessions/${id}/messages`);
  expect(said.map((one: { content: string }) => one.content)).toContain("green leaves");
});
