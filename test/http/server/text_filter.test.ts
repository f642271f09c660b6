import { expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";

it("lists filter by text, engine and time (contract 8.2)", async () => {
  await using app = await openApp();
  const make = async (name: string, description: string) =>
    (await app.call("POST /api/workers", { name, description })).id;
  const [first, second] = [await make("Ada", "Checks INVOICES"), await make("Bob", "Walks dogs")];
  for (const [worker_id, instruction] of [[first, "Sum the report"], [second, "Feed Rex"]]) {
    await app.call("POST /api/tasks", { message_id: "m", worker_id, instruction, type: "immediate" });
  }
  await app.settle();
  const { id } = await app.call("POST /api/local/sessions", { name: "x", worker_id: first });
  await app.call(`POST /api/local/sessions/${id}/messages`, { content: "Where is my Umbrella?" });
  await app.settle();
  const names = async (path: string, field: string) =>
    (await app.call(`GET ${path}`)).map((row: Record<string, unknown>) => row[field]);
  expect(await names("/api/executions?text=REPORT", "worker_name")).toEqual(["Ada"]);
  expect(await names("/api/executions?text=rex&engine=echo", "worker_name")).toEqual(["Bob"]);
  expect(await names("/api/executions?engine=claude", "worker_name")).toEqual([]);
  expect(await names("/api/executions?text=rex&completed_to=1", "worker_name")).toEqual([]);
  expect(await names("/api/workers?text=invoices", "name")).toEqual(["Ada"]);
  expect(await names("/api/workers?engine=claude", "name")).toEqual([]);
  expect(await names("/api/messages/inbound?text=umbrella", "content")).toEqual(["Where is my Umbrella?"]);
  expect(await names("/api/messages/outbound?text=umbrella", "message_id")).toHaveLength(1);
  expect(await names("/api/messages/outbound?text=%25", "message_id")).toEqual([]);
});
