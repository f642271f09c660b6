import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { openApp } from "../harness/service/app.ts";
import { buildBearer } from "../harness/model/people.ts";
import { StreamClient } from "../harness/stream.ts";
import { loadContract, type Operation } from "../harness/model/contract.ts";

describe("/openapi.json (contract 5)", () => {
  it("is a valid OpenAPI 3.1 document, the same for every caller", async () => {
    await using app = await openApp();
    const response = await app.server.fetch(new Request("http://localhost/openapi.json"));
    const document = await response.json();
    expect(document.openapi).toBe("3.1.0");
    const result = await new Validator().validate(structuredClone(document));
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
    expect(document).toEqual(JSON.parse(JSON.stringify((await loadContract()).document)));
  });

  it("contains every route under a unique name, with its scope and errors", async () => {
    const { document } = await loadContract();
    const all = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        key: `${method.toUpperCase()} ${path}`,
        operation,
      }))
    );
    const outside = all.filter(({ key }) => !key.includes(" /api/"));
    expect(outside.map(({ key }) => key).sort()).toEqual([
      "GET /livez",
      "GET /metrics",
      "GET /readyz",
      "GET /v1/models",
      "POST /hooks/{name}",
      "POST /mcp",
      "POST /v1/chat/completions",
    ]);
    const operations = all.filter((one) => !outside.includes(one));
    const routes = (ROUTES as readonly AnyRoute[]).filter(({ path }) => path.startsWith("/api/")).map((one) =>
      `${one.method} ${one.path.replace(/:(\w+)/g, "{$1}")}`
    );
    expect(operations.map((one) => one.key).sort()).toEqual(routes.sort());
    const names = operations.map((one) => one.operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { key, operation } of operations) {
      const open = key.includes("/api/auth/");
      // The token of a run is enough to ask about a tool call. A search covers what its caller can read, and a device is of its user.
      const needsNoScope = open || (key.includes("/api/approvals") && key !== "GET /api/approvals") ||
        /^\w+ \/api\/(search|recall|push\/key)$/.test(key);
      expect([key, "x-required-scope" in operation]).toEqual([key, !needsNoScope]);
      const wanted = open
        ? ["400", "405", "429", "500", "503"]
        : ["400", "401", "403", "404", "405", "500", "503"];
      expect([key, Object.keys(operation.responses)]).toEqual([key, expect.arrayContaining(wanted)]);
      expect(hasProblems(operation)).toBe(true);
    }
  });

  it("describes the events of a stream, its resumption, and the responses with a warning", async () => {
    const { document, ajv } = await loadContract();
    await using app = await openApp();
    const { id } = await app.call("POST /api/local/sessions");
    await app.call("POST /api/workers", { name: "Ada" });
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "@Ada hello" });
    await app.settle();
    const streams: [string, string, string[]][] = [
      ["/api/local/sessions/{id}/stream", `/api/local/sessions/${id}/stream`, ["message", "reset", "status"]],
      ["/api/events", "/api/events", ["event", "reset"]],
    ];
    for (const [path, url, names] of streams) {
      const operation = document.paths[path]?.get as unknown as Streaming;
      expect(operation.parameters.map((one) => one.name)).toContain("last-event-id");
      // An unknown number causes a reset and then all events.
      const headers = { accept: "text/event-stream", "last-event-id": "999999999" };
      const client = await StreamClient.open(app.url + url, {
        ...headers,
        ...buildBearer(await app.token()),
      });
      await client.until((one) => names.every((name) => one.named(name).length > 0));
      await client.close();
      expect(Object.keys(operation["x-events"])).toEqual(expect.arrayContaining([...names, "end"]));
      for (const { event, data } of client.events) {
        const validate = ajv.compile({ $ref: `api${operation["x-events"][event]?.$ref}` });
        expect([event, validate(data), validate.errors]).toEqual([event, true, null]);
      }
    }
    const warns = Object.values(document.paths).flatMap((methods) => Object.values(methods)).filter((one) =>
      Object.values(one.responses).some((response) => "Warning" in ((response as Headed).headers ?? {}))
    );
    expect(warns.map((one) => one.operationId).sort()).toEqual([
      "recall",
      "search.find",
      "secret.put",
      "worker.create",
      "worker.update",
    ]);
  });

  it("every request body has an example, and every example is valid", async () => {
    const { document, ajv } = await loadContract();
    const without: string[] = [];
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      const validate = ajv.compile({ $ref: `api#/components/schemas/${name}` });
      for (const example of schema.examples ?? []) {
        expect([name, validate(example), validate.errors]).toEqual([name, true, null]);
      }
      if (/(Create|Update|Save|Send|Login|Refresh)$/.test(name) && (schema.examples ?? []).length === 0) {
        without.push(name);
      }
    }
    expect(without).toEqual([]);
  });

  it("the server accepts the examples", async () => {
    const { document } = await loadContract();
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions");
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: "hi",
    });
    await app.settle();
    const department = await app.call("POST /api/departments", { name: "Labs" });
    // Ids in examples do not exist here.
    const withRealIds = (example: object): object => ({
      ...example,
      ...("tasks" in example ? { tasks: (example.tasks as object[]).map(withRealIds) } : {}),
      ...("worker_id" in example ? { worker_id: worker.id } : {}),
      ...("message_id" in example ? { message_id } : {}),
      ...("scheduled_at" in example ? { scheduled_at: Date.now() + 60_000 } : {}),
    });
    const takers: Record<string, string> = {
      WorkerCreate: "POST /api/workers",
      WorkerUpdate: `PUT /api/workers/${worker.id}`,
      TaskCreate: "POST /api/tasks",
      TaskBatchCreate: "POST /api/tasks/batch",
      MemorySave: "PUT /api/memory/entry",
      DepartmentCreate: "POST /api/departments",
      DepartmentUpdate: `PUT /api/departments/${department.id}`,
      MessageSend: "POST /api/messages",
      LocalSessionCreate: "POST /api/local/sessions",
      LocalSessionUpdate: `PUT /api/local/sessions/${session.id}`,
      LocalMessageCreate: `POST /api/local/sessions/${session.id}/messages`,
    };
    for (const [name, route] of Object.entries(takers)) {
      for (const example of document.components.schemas[name]?.examples ?? []) {
        const reply = await app.send(route, withRealIds(example as object));
        expect([name, reply.status, reply.body.detail]).toEqual([name, expect.any(Number), undefined]);
      }
    }
  });
});

function hasProblems(operation: Operation): boolean {
  return Object.entries(operation.responses).every(([status, response]) =>
    Number(status) < 400 || response.content?.["application/problem+json"] !== undefined
  );
}

interface Headed {
  headers?: Record<string, unknown>;
}

interface Streaming {
  parameters: { name: string }[];
  "x-events": Record<string, { $ref: string }>;
}
