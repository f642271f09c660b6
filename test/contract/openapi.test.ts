import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { openApp } from "../harness/app.ts";
import { contract, type Operation } from "../harness/contract.ts";

describe("/openapi.json (contract 5)", () => {
  it("is a valid OpenAPI 3.1 document, the same for everybody", async () => {
    await using app = await openApp();
    const response = await app.server.fetch(new Request("http://localhost/openapi.json"));
    const document = await response.json();
    expect(document.openapi).toBe("3.1.0");
    const result = await new Validator().validate(structuredClone(document));
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
    expect(document).toEqual(JSON.parse(JSON.stringify((await contract()).document)));
  });

  it("knows every route, each under a name of its own, with its scope and its errors", async () => {
    const { document } = await contract();
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        key: `${method.toUpperCase()} ${path}`,
        operation,
      }))
    );
    const routes = (ROUTES as readonly AnyRoute[]).map((one) =>
      `${one.method} ${one.path.replace(/:(\w+)/g, "{$1}")}`
    );
    expect(operations.map((one) => one.key).sort()).toEqual(routes.sort());
    const names = operations.map((one) => one.operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { key, operation } of operations) {
      const open = key.includes("/api/auth/");
      expect([key, "x-required-scope" in operation]).toEqual([key, !open]);
      const wanted = open
        ? ["400", "405", "429", "500", "503"]
        : ["400", "401", "403", "404", "405", "500", "503"];
      expect([key, Object.keys(operation.responses)]).toEqual([key, expect.arrayContaining(wanted)]);
      expect(problemsOf(operation)).toBe(true);
    }
  });

  it("every request body has an example, and every example is valid", async () => {
    const { document, ajv } = await contract();
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
    const { document } = await contract();
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions");
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: "hi",
    });
    await app.settle();
    const department = await app.call("POST /api/departments", { name: "Labs" });
    // Ids in examples name nothing here.
    const mended = (example: object) => ({
      ...example,
      ...("worker_id" in example ? { worker_id: worker.id } : {}),
      ...("message_id" in example ? { message_id } : {}),
      ...("scheduled_at" in example ? { scheduled_at: Date.now() + 60_000 } : {}),
    });
    const takers: Record<string, string> = {
      WorkerCreate: "POST /api/workers",
      WorkerUpdate: `PUT /api/workers/${worker.id}`,
      TaskCreate: "POST /api/tasks",
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
        const reply = await app.send(route, mended(example as object));
        expect([name, reply.status, reply.body.detail]).toEqual([name, expect.any(Number), undefined]);
      }
    }
  });
});

function problemsOf(operation: Operation): boolean {
  return Object.entries(operation.responses).every(([status, response]) =>
    Number(status) < 400 || response.content?.["application/problem+json"] !== undefined
  );
}
