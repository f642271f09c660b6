import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

async function tree(app: App) {
  const a = await app.call("POST /api/departments", { name: "Acme" });
  const b = await app.call("POST /api/departments", { name: "Labs", parent_id: "acme" });
  const c = await app.call("POST /api/departments", { name: "Optics", parent_id: b.id });
  return { a, b, c };
}

describe("/api/departments (interface 4.2, contract 3)", () => {
  it("POST creates a department below a parent, given by id or by name in any case", async () => {
    await using app = await openApp();
    const { a, b, c } = await tree(app);
    expect(a).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      name: "Acme",
      parent_id: null,
      sort_order: 0,
      worker_count: 0,
      created_at: expect.any(Number),
      updated_at: a.created_at,
    });
    expect([b.parent_id, c.parent_id]).toEqual([a.id, b.id]);
    expect(await app.call("GET /api/departments/LABS")).toEqual(b);
    expect(await app.call(`GET /api/departments/${c.id}`)).toEqual(c);
  });

  it("GET returns trees by sort order and name, with children and counts", async () => {
    await using app = await openApp();
    const { a, b, c } = await tree(app);
    await app.call("POST /api/departments", { name: "zoo", sort_order: -1 });
    await app.call("POST /api/departments", { name: "Admin", parent_id: "Acme" });
    await app.call("POST /api/workers", { name: "Ada", departments: ["Labs", c.id] });
    const reply = await app.send("GET /api/departments");
    expect(reply.headers.get("x-total-count")).toBe("5");
    expect(reply.body.map((one: { name: string }) => one.name)).toEqual(["zoo", "Acme"]);
    const [, acme] = reply.body;
    expect(acme.children.map((one: { name: string }) => one.name)).toEqual(["Admin", "Labs"]);
    expect(acme.children[1]).toEqual({
      ...b,
      worker_count: 1,
      children: [{ ...c, worker_count: 1, children: [] }],
    });
    expect(a.id).toBe(acme.id);
  });

  it("an id takes precedence over a department with that name", async () => {
    await using app = await openApp();
    const first = await app.call("POST /api/departments", { name: "First" });
    await app.call("POST /api/departments", { name: first.id });
    expect((await app.call(`GET /api/departments/${first.id}`)).name).toBe("First");
  });

  it("names are encoded in paths: slashes, blanks, percent signs, emoji", async () => {
    await using app = await openApp();
    for (const name of ["R/D", "a b", "100 %", "🚀", "?#&", "…"]) {
      const made = await app.call("POST /api/departments", { name });
      expect(await app.call(`GET /api/departments/${encodeURIComponent(name)}`)).toEqual(made);
    }
  });

  it("refuses names that exist in another case, contain a comma, or are dots", async () => {
    await using app = await openApp();
    await app.call("POST /api/departments", { name: "Größe" });
    const taken = await app.send("POST /api/departments", { name: "GRÖSSE".replace("SS", "ß") });
    expect([taken.status, taken.body.code]).toEqual([409, "conflict"]);
    for (const name of ["a,b", ".", "..", "", " ", "x".repeat(201), "a\nb"]) {
      const reply = await app.send("POST /api/departments", { name });
      expect([name, reply.status, reply.body.errors[0].path]).toEqual([name, 400, "name"]);
    }
    const other = await app.call("POST /api/departments", { name: "Other" });
    expect((await app.send(`PUT /api/departments/${other.id}`, { name: "größe" })).status).toBe(409);
    expect((await app.call(`PUT /api/departments/${other.id}`, { name: "OTHER" })).name).toBe("OTHER");
  });

  it("PUT changes fields, moves, moves to the top, and accepts the response of GET", async () => {
    await using app = await openApp();
    const { a, b, c } = await tree(app);
    const same = await app.call(`PUT /api/departments/${b.id}`, b);
    expect(same).toEqual({ ...b, updated_at: expect.any(Number) });
    expect(await app.call(`PUT /api/departments/${a.id}`, a)).toMatchObject({ parent_id: null });
    expect(await app.call("PUT /api/departments/Optics", { parent_id: "Acme", sort_order: 5 }))
      .toMatchObject({ name: "Optics", parent_id: a.id, sort_order: 5 });
    expect((await app.call(`PUT /api/departments/${c.id}`, { parent_id: "" })).parent_id).toBe(null);
  });

  it("no move creates a cycle, even with simultaneous moves", async () => {
    await using app = await openApp();
    const { a, b, c } = await tree(app);
    for (const [id, parent_id] of [[a.id, a.id], [a.id, b.id], [a.id, c.id], [b.id, "optics"]]) {
      const reply = await app.send(`PUT /api/departments/${id}`, { parent_id });
      expect([reply.status, reply.body.code]).toEqual([409, "conflict"]);
    }
    const x = await app.call("POST /api/departments", { name: "x" });
    const y = await app.call("POST /api/departments", { name: "y" });
    const both = await Promise.all([
      app.send(`PUT /api/departments/${x.id}`, { parent_id: y.id }),
      app.send(`PUT /api/departments/${y.id}`, { parent_id: x.id }),
    ]);
    expect(both.map((reply) => reply.status).sort()).toEqual([200, 409]);
  });

  it("DELETE removes its workers, and is refused with children", async () => {
    await using app = await openApp();
    const { a, b, c } = await tree(app);
    const worker = await app.call("POST /api/workers", { name: "Ada", departments: ["Acme", "Optics"] });
    expect((await app.send(`DELETE /api/departments/${b.id}`)).status).toBe(409);
    expect(await app.call("DELETE /api/departments/optics")).toEqual({ status: "deleted" });
    expect(await app.call("DELETE /api/departments/Labs")).toEqual({ status: "deleted" });
    expect((await app.call(`GET /api/workers/${worker.id}`)).departments).toEqual([{
      id: a.id,
      name: "Acme",
    }]);
    expect((await app.send(`DELETE /api/departments/${c.id}`)).status).toBe(404);
  });

  it("DELETE during another request gives that request an error, never 500", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const seen = new Set<number>();
    for (let round = 0; round < 10; round++) {
      const name = `d${round}`;
      await app.call("POST /api/departments", { name });
      const child = await app.call("POST /api/departments", { name: `c${round}` });
      const replies = await Promise.all([
        app.send("POST /api/workers", { name: "Bob", departments: [name] }),
        app.send("POST /api/departments", { name: `below ${round}`, parent_id: name }),
        app.send(`DELETE /api/departments/${name}`),
        app.send(`PUT /api/departments/${child.id}`, { parent_id: name }),
        app.send(`PUT /api/workers/${worker.id}`, { departments: [name] }),
      ]);
      for (const { status, body } of replies) {
        seen.add(status);
        if (status === 400) expect(body.errors[0].path).toMatch(/^(departments\.0|parent_id)$/);
      }
    }
    expect([...seen].filter((status) => ![200, 201, 400, 409].includes(status))).toEqual([]);
    expect(seen.size).toBeGreaterThan(1);
  });

  it("reports unknown parents, paths and fields", async () => {
    await using app = await openApp();
    const parent = await app.send("POST /api/departments", { name: "x", parent_id: "nowhere" });
    expect([parent.status, parent.body.errors[0].path]).toEqual([400, "parent_id"]);
    for (const method of ["GET", "DELETE"]) {
      expect((await app.send(`${method} /api/departments/${UNKNOWN}`)).status).toBe(404);
    }
    const field = await app.send("POST /api/departments", { name: "x", parent: "y" });
    expect(field.body.errors[0]).toMatchObject({
      path: "parent",
      message: expect.stringContaining("parent_id"),
    });
    expect(await app.call("GET /api/departments")).toEqual([]);
  });
});
