import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { configSchema, loadConfig } from "../../../src/config/schema.ts";
import { parseYaml } from "../../../src/config/yaml.ts";
import { mergeJson } from "../../../src/engine/protocol/json_fields.ts";
import { type App, openApp } from "../../harness/service/app.ts";

const INHERITED = [
  ...Object.getOwnPropertyNames(Object.prototype).filter((name) => name !== "__proto__"),
  "prototype",
];
const PROTO = "__proto__";
const BODIES = {
  "POST /api/workers": ['{"name":"Ada","engine_args":{"__proto__":"-x"}}', "engine_args.__proto__"],
  "POST /api/fleet/apply": ['{"fleet":{"memory":{"__proto__":"v"}}}', "fleet.memory.__proto__"],
  "POST /api/fleet/plan": [
    '{"fleet":{"workers":[{"name":"Ada","engine_args":{"\\u005f_proto__":"v"}}]}}',
    "fleet.workers.0.engine_args.__proto__",
  ],
  "POST /api/tasks": ['{"instruction":"x","__proto__":{"paused":true}}', "__proto__"],
} as const;

async function exportFleet(app: App): Promise<Record<string, unknown>> {
  return await app.call("GET /api/fleet");
}

describe("keys that callers choose", () => {
  it("are refused when they are __proto__, with their path, in every JSON body", async () => {
    await using app = await openApp({ inMemory: true });
    for (const [route, [body, path]] of Object.entries(BODIES)) {
      const { status, body: problem } = await app.send(route, body);
      expect([route, status]).toEqual([route, 400]);
      expect(problem.errors).toEqual([{ path, message: expect.stringContaining("not a key") }]);
    }
    const entry = { scope: "global", key: PROTO, value: "v" };
    expect(await app.send("PUT /api/memory/entry", entry)).toMatchObject({ status: 400 });
    expect(await app.call("GET /api/workers")).toEqual([]);
    expect((await exportFleet(app)).memory).toEqual({});
  });

  it("may stand in values", async () => {
    await using app = await openApp({ inMemory: true });
    const entry = { scope: "global", key: "proto", value: '{"__proto__": 1}' };
    expect(await app.send("PUT /api/memory/entry", entry)).toMatchObject({ status: 200 });
    expect(await app.send("POST /api/workers", { name: PROTO })).toMatchObject({ status: 201 });
  });

  it("survive export and apply when objects inherit a property of the same name", async () => {
    await using app = await openApp({ inMemory: true });
    const memory = Object.fromEntries(INHERITED.map((name) => [name, `about ${name}`]));
    for (const [key, value] of Object.entries(memory)) {
      await app.call("PUT /api/memory/entry", { scope: "global", key, value });
    }
    const exported = await exportFleet(app);
    expect(exported.memory).toEqual(memory);
    await using other = await openApp({ inMemory: true });
    expect(await other.send("POST /api/fleet/apply", { fleet: exported })).toMatchObject({ status: 200 });
    expect(await exportFleet(other)).toEqual(exported);
    const { status, body } = await other.send("POST /api/workers", {
      name: "Ada",
      engine_args: { constructor: "-x" },
    });
    expect([status, body.errors?.[0]?.path]).toEqual([400, "engine_args.constructor"]);
  });

  it("survive export and apply, whatever the keys are", async () => {
    await using app = await openApp({ inMemory: true });
    const key = fc.oneof(
      fc.constantFrom(...INHERITED, "0", "-1", "a.b", "a: b", "~", "null", "é", "😀"),
      fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(key, fc.string({ unit: "grapheme" }), { maxKeys: 6 }),
        async (memory) => {
          const { status } = await app.send("POST /api/fleet/apply", { fleet: { memory }, prune: true });
          if (status === 400) return; // Another rule refuses the key or the value.
          expect(status).toBe(200);
          expect((await exportFleet(app)).memory ?? {}).toEqual({ ...memory });
        },
      ),
      { numRuns: 60, seed: 37 },
    );
  });
});

describe("keys of YAML files", () => {
  it.each([
    ["a memory", "memory:\n  __proto__: v\n", "2:3"],
    ["the environment of an engine", "engines:\n  a: { env: { A: b, '__proto__': c } }\n", "2:21"],
    ["roles of a claim", 'auth:\n  oidc:\n    roles:\n      "\\x5f_proto__": admin\n', "4:7"],
    ["the top", "__proto__: {}\n", "1:1"],
    ["an explicit key", "a:\n  ? __proto__\n  : x\n", "2:5"],
    ["an alias", "a: &k __proto__\nb:\n  *k : x\n", "3:3"],
    ["a list", "workers:\n  - name: x\n    engine_args: {__proto__: y}\n", "3:19"],
  ])("are refused when they are __proto__, with their position: %s", (_place, text, position) => {
    expect(() => parseYaml(text)).toThrow(`${position}: __proto__ is not a key`);
  });

  it("keep the names of properties that objects inherit", () => {
    for (const name of INHERITED) {
      const value = parseYaml(`memory:\n  ${name}: v\n`).document.toJS();
      expect(Object.entries(value.memory)).toEqual([[name, "v"]]);
      const { engines, auth } = configSchema.parse({
        engines: { [name]: { kind: "echo", env: { [name]: "v" } } },
        auth: { oidc: { roles: { [name]: "admin" } } },
      });
      expect(Object.entries(engines)).toContainEqual([
        name,
        expect.objectContaining({ env: { [name]: "v" } }),
      ]);
      expect(Object.entries(auth.oidc.roles)).toEqual([[name, "admin"]]);
    }
  });

  it("stop the start when config.yaml has __proto__", async () => {
    const path = await Deno.makeTempFile({ suffix: ".yaml" });
    await Deno.writeTextFile(path, "engines:\n  echo:\n    env:\n      __proto__: x\n");
    await expect(loadConfig(path, {})).rejects.toThrow(`${path}:4:7: __proto__ is not a key`);
    await Deno.remove(path);
  });
});

it("mergeJson() keeps every key of an engine's settings", () => {
  const present = '{"__proto__":{"a":1},"constructor":{"b":2},"toString":"c"}';
  expect(JSON.parse(mergeJson({}, present, { ours: 1 }))).toEqual(
    JSON.parse(`${present.slice(0, -1)},"ours":1}`),
  );
});
