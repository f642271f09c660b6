import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { readAll } from "../requests.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Parameters that are not filters of rows. */
const NO_FILTER =
  /^(page|page_size|cursor|limit|text|days|failure|after|before|token|last|ref|by|step|from|to|since|paused|failing|recursive|no_recursive)$|_(from|to)$/;

/** Every list of the API with its address and parameters. */
async function lists(app: App): Promise<{ path: string; parameters: Json[]; headers: string[] }[]> {
  const document = await app.call("GET /openapi.json");
  return Object.entries<Json>(document.paths).flatMap(([path, { get }]) => {
    const answer = get?.responses["200"];
    if (answer?.content?.["application/json"]?.schema?.type !== "array") return [];
    // The preview has computed times, which need no pages. A search counts nothing (contract 31).
    if (["/api/schedules/preview", "/api/search", "/api/recall"].includes(path)) return [];
    return [{ path, parameters: get.parameters ?? [], headers: Object.keys(answer.headers) }];
  });
}

describe("every list (contract 8.2)", () => {
  it("has a total in X-Total-Count, also in the OpenAPI document", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/local/sessions", { name: "talk" });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const all = await lists(app);
    expect(all.length).toBeGreaterThan(15);
    for (const { path, headers, parameters } of all) {
      expect([path, headers]).toEqual([path, expect.arrayContaining(["X-Total-Count", "Link"])]);
      const needed = parameters.filter(({ required }) => required && path !== "");
      const query = needed.filter((one) => one.in === "query").map(({ name }) => `${name}=global`);
      if (path === "/api/tasks") query.push(`worker_id=${worker.id}`);
      // Senders and deliveries need a platform or a webhook, which this test does not create.
      if (/\/(senders|deliveries)$/.test(path)) continue;
      const address = path.replace("/api/workers/{id}", `/api/workers/${worker.id}`)
        .replace(/\{\w+\}/, id);
      const reply = await app.send(`GET ${address}?${query.join("&")}`, undefined, {
        accept: "application/json",
      });
      expect([path, reply.status]).toEqual([path, 200]);
      expect([path, Number(reply.headers.get("x-total-count"))]).toEqual([
        path,
        expect.toSatisfy((total: number) => total >= reply.body.length && Number.isInteger(total)),
      ]);
    }
  });

  it("accepts each filter several times: any value matches", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    for (const { path, parameters } of await lists(app)) {
      const filters = parameters.filter((one) =>
        one.in === "query" && !one.required && !NO_FILTER.test(one.name)
      );
      for (const { name, schema } of filters) {
        const value = (await findValue(app, path, name, schema)) ?? "";
        const needed = path === "/api/tasks" && name !== "worker_id" ? `&worker_id=${worker.id}` : "";
        const address = path.replace(/\{\w+\}/, worker.id);
        const reply = await app.send(`GET ${address}?${name}=${value}&${name}=${value}${needed}`, undefined, {
          accept: "application/json",
        });
        expect([path, name, reply.status, reply.status === 200 ? "" : reply.body]).toEqual([
          path,
          name,
          200,
          "",
        ]);
      }
    }
  });

  it("of events and of a chat has a Link to each next page", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/local/sessions", { name: "talk" });
    for (let at = 0; at < 5; at++) {
      await app.call(`POST /api/local/sessions/${id}/messages`, { content: `number ${at}`, alone: true });
    }
    await app.settle();
    const read = await readAll(app, `/api/local/sessions/${id}/messages?limit=3`);
    expect(read.rows.filter(({ role }) => role === "user").map(({ content }) => content).sort())
      .toEqual(["number 0", "number 1", "number 2", "number 3", "number 4"]);
    expect([read.rows.length, ...new Set(read.totals)]).toEqual([10, "10"]);
    const runs = await readAll(app, "/api/system/executions?limit=2");
    expect([new Set(runs.rows.map((run) => run.id)).size, ...new Set(runs.totals)]).toEqual([5, "5"]);
    const events = await app.send("GET /api/events?page_size=2&kind=message.received", undefined, {
      accept: "application/json",
    });
    expect([events.body.length, events.headers.get("x-total-count")]).toEqual([2, "5"]);
  });

  it("of workers accepts several departments, and no_recursive as recursive=false", async () => {
    await using app = await openApp();
    const parent = await app.call("POST /api/departments", { name: "Labs" });
    await app.call("POST /api/departments", { name: "Optics", parent_id: parent.id });
    await app.call("POST /api/departments", { name: "Sales" });
    // Eve is in a department and in another one below it.
    const workers = [["Ada", "Labs"], ["Bob", "Optics"], ["Cid", "Sales"], ["Dan"], [
      "Eve",
      "Labs",
      "Optics",
    ]];
    for (const [name, ...departments] of workers) await app.call("POST /api/workers", { name, departments });
    const names = async (query: string) =>
      (await app.call(`GET /api/workers?${query}`)).map(({ name }: { name: string }) => name).sort();
    expect(await names("department=labs")).toEqual(["Ada", "Bob", "Eve"]);
    for (
      const all of ["department=Labs,Sales", `department=${parent.id}&department=Sales&department=Nowhere`]
    ) {
      expect(await names(all)).toEqual(["Ada", "Bob", "Cid", "Eve"]);
    }
    for (const flat of ["recursive=false", "no_recursive=true", "recursive=true&no_recursive=true"]) {
      expect(await names(`department=Labs,Sales&${flat}`)).toEqual(["Ada", "Cid", "Eve"]);
    }
    expect(await names("department=Nowhere")).toEqual([]);
    expect(await names("name=ad&name=da")).toEqual(["Ada", "Dan"]);
  });
});

// Finds a valid value of the filter.
function findValue(app: App, path: string, name: string, schema: Json): Promise<string> | string {
  const known = schema?.enum ?? schema?.items?.enum;
  if (known !== undefined) return known[0];
  if (name === "status") return STATUS[path] ?? "completed";
  if (name === "type") return "immediate";
  if (name === "kind") return "worker.created";
  if (name === "role") return "viewer";
  if (name === "source_type") return "worker";
  if (/_id$|^id$/.test(name)) return app.call("GET /api/workers").then(([worker]) => worker.id);
  return "something";
}

const STATUS: Record<string, string> = {
  "/api/messages/inbound": "received",
  "/api/messages/outbound": "sent",
  "/api/queue": "pending",
  "/api/questions": "open",
};
