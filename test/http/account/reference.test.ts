import { expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { ctl } from "../../harness/terminal.ts";

const CREATE: Record<string, (name: string) => Record<string, unknown>> = {
  users: (name) => ({ name, role: "viewer" }),
  tokens: (name) => ({ name, scopes: ["read:tasks"] }),
  webhooks: (name) => ({ name, url: "https://hooks.example.org/x", events: ["task.*"] }),
  runners: (name) => ({ name }),
};

it.each(Object.entries(CREATE))(
  "GET /api/%s finds an object by its id, the ending of its id and its name (contract 8.11)",
  async (list, build) => {
    await using app = await openApp();
    const { id } = await app.call(`POST /api/${list}`, build("Night watch"));
    await app.call(`POST /api/${list}`, build("Day watch"));
    for (const ref of [id, id.slice(-8), "night WATCH"]) {
      const found = await app.call(`GET /api/${list}?ref=${encodeURIComponent(ref)}`) as { id: string }[];
      expect(found.map((one) => one.id), ref).toEqual([id]);
    }
    expect(await app.call(`GET /api/${list}?ref=watch`)).toEqual([]);
    // The command finds it beyond the first page, too.
    const noun = list.slice(0, -1);
    const verb = noun === "runner" ? "remove" : "delete";
    expect((await ctl(app, [noun, verb, id.slice(-8), "--yes"])).code).toBe(0);
    expect(await app.call(`GET /api/${list}?ref=${id}`)).toEqual([]);
  },
);
