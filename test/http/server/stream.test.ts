import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HEARTBEAT_MS, STALLED_MAX_MS } from "../../../src/http/stream/event_source.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { buildBearer, logIn } from "../../harness/model/people.ts";
import { StreamClient } from "../../harness/stream.ts";
import { fetchAs } from "../requests.ts";
import { waitUntil } from "../../harness/wait.ts";

const SESSIONS = "/api/local/sessions";

describe("GET /api/local/sessions/:id/stream (interface 6, contract 4)", () => {
  it("sends the states of a message and its reply, each with its number", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const client = await open(app, id);
    const { message_id } = await send(app, id, "@ada say hello");
    await client.until((one) => one.named("status").some(({ data }) => data.state === "idle"));
    const task = await app.db.first("select id from task");
    expect(client.events.map(({ event, data }) => [event, data.state ?? data.content])).toEqual([
      ["status", "received"],
      ["status", "routing"],
      ["status", "queued"],
      ["status", "working"],
      ["message", "hello"],
      ["status", "idle"],
    ]);
    expect(client.events[3]?.data).toEqual({ state: "working", worker_name: "Ada", task_id: task?.id });
    expect(client.named("message")[0]?.data).toEqual({
      id: expect.any(String),
      role: "bee",
      content: "hello",
      ts: expect.any(Number),
      source_type: "worker",
      source_id: ada.id,
      worker_name: "Ada",
      media: null,
      reply_to: message_id,
      question_id: null,
    });
    expect(message_id).toEqual(expect.any(String));
    const ids = client.events.map((event) => Number(event.id));
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    await client.close();
  });

  it("sends immediately the headers that proxies need [SSE-7]", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const client = await open(app, id);
    expect(client.status).toBe(200);
    expect(client.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(client.headers.get("cache-control")).toBe("no-store");
    expect(client.headers.get("x-accel-buffering")).toBe("no");
    expect(client.headers.get("content-encoding")).toBeNull();
    await client.close();
  });

  it("starts with new events, or resumes after Last-Event-ID or ?after=", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    for (const text of ["one", "two"]) {
      await send(app, id, text);
      await app.settle();
    }
    const fresh = await open(app, id);
    await send(app, id, "three");
    await fresh.until((one) => one.named("message").length === 1);
    expect(fresh.named("message")[0]?.data.content).toBe("three");
    const first = Number(fresh.events[0]?.id);
    await fresh.close();
    for (const [path, headers] of [["?after=0", {}], ["", { "last-event-id": "1" }]] as const) {
      const again = await open(app, id, path, headers);
      await again.until((one) => one.named("message").length === 3);
      expect(again.named("message").map(({ data }) => data.content)).toEqual(["one", "two", "three"]);
      await again.close();
    }
    const later = await open(app, id, "", { "last-event-id": String(first) });
    await later.until((one) => one.named("message").length === 1);
    expect(later.events[0]?.data).toEqual({ state: "routing", worker_name: "", task_id: null });
    await later.close();
  });

  it("answers an unknown number with reset and all stored events [SSE-3]", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    await send(app, id, "one");
    await app.settle();
    for (const odd of ["999999", "-1", "x", "1e3", "9".repeat(30), "1 2", "\u00e4", "7".repeat(10_000)]) {
      const client = await open(app, id, "", { "last-event-id": odd });
      await client.until((one) => one.named("message").length === 1);
      expect(client.events[0]?.event, odd).toBe("reset");
      await client.close();
    }
    expect((await app.send(`GET ${SESSIONS}/${id}/stream?after=-1`)).status).toBe(400);
    const future = await open(app, id, "?after=999999");
    await future.until((one) => one.named("reset").length === 1);
    await future.close();

    await app.db.write([{ sql: "delete from journal where seq <= 6", args: [] }]);
    const pruned = await open(app, id, "", { "last-event-id": "2" });
    await pruned.until((one) => one.named("reset").length === 1);
    await pruned.close();
  });

  it("sends a comment every 15 s without events (contract 4)", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const client = await open(app, id);
    const beats = client.comments.length;
    for (let i = 0; i < 3; i++) {
      for (let ms = 0; ms < HEARTBEAT_MS; ms += 1_000) {
        clock.advance(1_000);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    }
    await client.until((one) => one.comments.length >= beats + 3);
    expect(client.events).toEqual([]);
    await client.close();
  });

  it("disconnects only the client that does not read [SSE-4]", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { wakeups } = app.server.parts;
    const before = wakeups.size;
    const body = async () => {
      const response = await fetchAs(app, `GET ${SESSIONS}/${id}/stream`);
      return (response.body as ReadableStream<Uint8Array>).getReader();
    };
    const [stalled, patient] = [await body(), await body()];
    await Promise.all([stalled.read(), patient.read()]);
    const waiting = patient.read();
    while (wakeups.size < before + 2) await new Promise((resolve) => setTimeout(resolve, 2));
    clock.advance(STALLED_MAX_MS - 1);
    expect(new TextDecoder().decode((await waiting).value)).toBe(":\n\n");
    const next = patient.read();
    expect(wakeups.size).toBe(before + 2);
    clock.advance(1);
    await expect(stalled.read()).rejects.toThrow("does not read");
    expect(wakeups.size).toBe(before + 1);
    clock.advance(HEARTBEAT_MS);
    expect((await next).done).toBe(false);
    await patient.cancel();
    expect(wakeups.size).toBe(before);
  });

  it("sends a long conversation completely, in steps of limited size [SSE-4]", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { message_id } = await send(app, id, "one");
    const content = "ü".repeat(60_000);
    for (let i = 0; i < 9; i++) {
      await app.call("POST /api/messages", { message_id, content: `${i}${content}` });
    }
    await app.settle();
    const response = await fetchAs(app, `GET ${SESSIONS}/${id}/stream?after=0`);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const sizes: number[] = [];
    let text = "";
    const decoder = new TextDecoder();
    while (!text.includes(`"8ü`)) {
      const { value = new Uint8Array() } = await reader.read();
      sizes.push(value.length);
      text += decoder.decode(value, { stream: true });
    }
    await reader.cancel();
    expect(Math.max(...sizes)).toBeLessThan(512 * 1024);
    expect(text.match(/event: message/g)?.length).toBeGreaterThanOrEqual(9);
  });

  it("ends with a reason: session deleted, token expired, password changed, server stopped [SSE-6]", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const { access_token } = await logIn(app, "admin", PASSWORD);
    const login = buildBearer(access_token);
    const make = async () => (await app.call(`POST ${SESSIONS}`)).id;
    const [one, two, three, four] = [await make(), await make(), await make(), await make()];
    const ended = async (client: StreamClient, reason: string) => {
      await client.until(({ events }) => events.at(-1)?.event === "end");
      expect(client.events.at(-1)?.data).toEqual({ reason });
      while (!client.ended) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const deleted = await open(app, one);
    await app.call(`DELETE ${SESSIONS}/${one}`);
    await ended(deleted, "deleted");

    const expiring = await open(app, two, "", login);
    const signed = await open(app, two);
    clock.advance(15 * 60_000 + 1_000);
    await ended(expiring, "token_expired");
    expect(signed.ended).toBe(false);

    const { access_token: second } = await logIn(app, "admin", PASSWORD);
    const revoked = await open(app, three, "", buildBearer(second));
    app.server.parts.authority.raiseVersion(2);
    clock.advance(1_000);
    await ended(revoked, "revoked");

    const stopped = await open(app, four);
    await app.stop();
    await ended(stopped, "shutdown");
    await ended(signed, "shutdown");
  });

  it("content cannot forge an event [SSE-8]", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const client = await open(app, id);
    const nasty = fc.stringMatching(/^(data|id|event|retry|:|\n|\r|\u2028|\ufeff| |x)+$/);
    const texts = fc.sample(nasty, 40).concat(["a\n\nevent: end\ndata: {}\n\n", "\r\rid: 9\r\r"]).filter((
      text,
    ) => text.trim() !== "");
    for (const text of texts) {
      await send(app, id, `@Ada ${text}`);
      // A message that arrives while another waits for routing is merged with it, and both get one reply.
      await app.settle();
    }
    await client.until((one) => one.named("message").length === texts.length);
    expect(client.named("end")).toEqual([]);
    expect(client.named("message").map(({ data }) => data.content.trim())).toEqual(
      texts.map((text) => text.trim().replace(/^[\s:,.!-]+/, "").trim() || `@Ada ${text}`.trim()),
    );
    await client.close();
  });

  it("releases everything when clients disconnect, also after HEAD [SSE-5]", async () => {
    await using app = await openApp();
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { wakeups } = app.server.parts;
    const before = wakeups.size;
    for (let i = 0; i < 50; i++) {
      const clients = await Promise.all(Array.from({ length: 4 }, () => open(app, id)));
      await Promise.all(clients.map((client) => client.close()));
      await app.send(`HEAD ${SESSIONS}/${id}/stream`);
    }
    const until = performance.now() + 5_000;
    while (wakeups.size > before && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(wakeups.size).toBe(before);
  });

  it("ends when the database fails, and releases everything [SSE-5]", async () => {
    await using app = await openApp({ inMemory: true });
    const { id } = await app.call(`POST ${SESSIONS}`);
    const { wakeups } = app.server.parts;
    const before = wakeups.size;
    const client = await open(app, id);
    await client.until(() => client.comments.length > 0);
    await app.db.write([{ sql: "alter table journal rename to away", args: [] }]);
    await waitUntil("the stream ends", () => client.ended);
    await app.db.write([{ sql: "alter table away rename to journal", args: [] }]);
    expect(wakeups.size).toBe(before);
  });
});

describe("GET /api/executions/:id/logs (contract 3)", () => {
  it("follows a run until its end, and lets caches store only a complete log [SEC-4]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    await send(app, id, "sleep 0.5");
    await app.until("execution.started");
    const [execution] = await app.call("GET /api/executions");
    const path = `GET /api/executions/${execution.id}/logs`;
    const during = await app.send(path);
    expect(during.headers.get("cache-control")).toBe("no-store");
    const followed = await app.send(`${path}?follow=true`);
    expect(followed.body).toMatch(/slept 0.5\n.*\[completed\]\n$/);
    await app.settle();
    const after = await app.send(path);
    expect(after.headers.get("cache-control")).toBe("public, max-age=3600");
    expect(after.headers.get("vary")).toBe("Authorization");
    expect(after.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(after.body).toBe(followed.body);
    const lines = after.body.trimEnd().split("\n");
    for (const tail of [0, 1, 2, 100]) {
      const some = await app.call(`${path}?tail=${tail}`);
      expect(some, String(tail)).toBe(
        tail === 0 ? "" : lines.slice(-tail).map((line: string) => `${line}\n`).join(""),
      );
    }
    expect((await app.send(`${path}?tail=-1`)).status).toBe(400);
    expect((await app.send(`${path}?follow=yes`)).status).toBe(400);
  });

  it("ends when the execution is deleted, and releases everything", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call(`POST ${SESSIONS}`);
    await send(app, id, "sleep 60");
    await app.until("execution.started");
    const [execution] = await app.call("GET /api/executions");
    const { wakeups } = app.server.parts;
    const before = wakeups.size;
    const response = await fetch(`${app.url}/api/executions/${execution.id}/logs?follow=true`, {
      headers: { authorization: `Bearer ${await app.token()}` },
    });
    await app.db.write([{ sql: "delete from execution", args: [] }]);
    await expect(response.text()).rejects.toThrow();
    expect(wakeups.size).toBe(before);
  });
});

async function open(
  app: App,
  id: string,
  query = "",
  headers: Record<string, string> = {},
): Promise<StreamClient> {
  const authorization = `Bearer ${await app.token()}`;
  return await StreamClient.open(`${app.url}${SESSIONS}/${id}/stream${query}`, { authorization, ...headers });
}

async function send(app: App, id: string, content: string): Promise<{ message_id: string }> {
  return await app.call(`POST ${SESSIONS}/${id}/messages`, { content });
}
