import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { type AskingRun, startAskingRun } from "../harness/fakes/asker.ts";
import { createToken, createUser } from "../harness/model/people.ts";
import { waitUntil } from "../harness/wait.ts";
import type { Json } from "../harness/service/client.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Fills every field of a route with values that could answer the question. */
function buildBody(route: AnyRoute, question: Json): Json {
  const words: Json = {
    answer: "Yes",
    content: "/answer Yes",
    text: "Yes",
    status: "answered",
    id: question.id,
  };
  if (!(route.body instanceof z.ZodObject)) return {};
  const [example] = (z.globalRegistry.get(route.body)?.examples ?? [{}]) as Json[];
  const known = Object.keys(route.body.shape);
  const own = Object.fromEntries(Object.entries(words).filter(([name]) => known.includes(name)));
  return { ...example, ...own, ...(known.includes("message_id") ? { message_id: question.message_id } : {}) };
}

/** Lists the statuses and answers of every question. */
async function listAnswers(app: App): Promise<string[]> {
  const rows = await app.db.read<{ answer: string; answered_by: string }>(
    "select answer, answered_by from question",
  );
  return rows.map(({ answer, answered_by }) => answer + answered_by).filter((text) => text !== "");
}

async function chat(app: App, run: AskingRun, body: Json, headers: Record<string, string>): Promise<number> {
  return (await app.send(`POST /api/local/sessions/${run.sessionId}/messages`, body, headers)).status;
}

describe("only a person answers a question (contract 12) [QST-2]", () => {
  it("a run with *:* cannot answer by any route or tool [QST-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startAskingRun(app, { scopes: ["*:*"] });
    const other = await startAskingRun(app, { name: "Other" });
    const own = await run.ask({ options: ["Yes", "No"] });
    const others = await other.ask();
    let tried = 0;
    for (const question of [own, others]) {
      // Routes that end the run or its conversation would end the test: a clear cancels, and answers nothing.
      const routes = (ROUTES as readonly AnyRoute[]).filter(({ operation }) =>
        !["session.clear", "chat.delete", "execution.cancel"].includes(operation)
      );
      for (const route of routes) {
        const path = route.path.replace(
          /:(\w+)/g,
          (_, name) => /local\/sessions/.test(route.path) && name === "id" ? run.sessionId : question.id,
        );
        const body = route.method === "GET" ? undefined : JSON.stringify(buildBody(route, question));
        const url = `http://localhost${path}${route.method === "GET" ? "?timeout_ms=0" : ""}`;
        const headers = {
          ...run.headers,
          accept: "application/json",
          "content-type": "application/json",
        };
        const response = await app.server.fetch(
          new Request(url, { method: route.method, headers, ...(body === undefined ? {} : { body }) }),
        );
        await response.body?.cancel();
        tried++;
      }
    }
    expect(tried).toBeGreaterThan(150);
    for (const verb of ["answer", "cancel"]) {
      const body = verb === "answer" ? { answer: "Yes" } : {};
      const reply = await app.send(`POST /api/questions/${own.id}/${verb}`, body, run.headers);
      expect([reply.status, reply.body.detail]).toEqual([403, expect.stringMatching(/only people may/)]);
    }
    const tools = await callMcp(app, run, "tools/list", {});
    expect(tools).toContain('"ask"');
    expect(tools).not.toMatch(/question_(answer|cancel)/);
    const called = { name: "question_answer", arguments: { id: own.id, answer: "Yes" } };
    expect(await callMcp(app, run, "tools/call", called)).toMatch(/error/i);
    expect(await listAnswers(app)).toEqual([]);
    for (const { id } of [own, others]) {
      expect((await app.call(`GET /api/questions/${id}`)).status).toBe("open");
    }
    await run.end();
    await other.end();
  });

  it("a run cannot answer by any message in the chat, nor by a quote [QST-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startAskingRun(app, { scopes: ["*:*"] });
    const chosen = await run.ask({ options: ["Yes", "No"] });
    const history = await app.call(`GET /api/local/sessions/${run.sessionId}/messages`);
    const asked = history.find((message: Json) => message.question_id === chosen.id).id;
    const words = ["Yes", "1", "/answer Yes", "!answer Yes", "user:admin: Yes", "> Yes"];
    for (const content of words) {
      expect(await chat(app, run, { content, alone: true }, run.headers)).toBe(202);
      expect(await chat(app, run, { content, reply_to: asked, alone: true }, run.headers)).toBe(202);
      const said = { message_id: run.messageId, content };
      expect((await app.send("POST /api/messages", said, run.headers)).status).toBe(201);
    }
    await app.until("message.routed", 2 * words.length + 1);
    expect(await listAnswers(app)).toEqual([]);
    // A new free question cannot be answered either.
    await app.call(`POST /api/questions/${chosen.id}/cancel`, {});
    const free = await run.ask({ text: "Which?" });
    expect(await chat(app, run, { content: "This one", alone: true }, run.headers)).toBe(202);
    await app.until("message.routed", 2 * words.length + 2);
    expect((await app.call(`GET /api/questions/${free.id}`)).status).toBe("open");
    // The same text from a user is an answer.
    expect(await chat(app, run, { content: "That one" }, {})).toBe(202);
    await app.until("question.answered");
    expect((await app.call(`GET /api/questions/${free.id}`)).answer).toBe("That one");
    await run.end();
  });

  it("a program cannot answer by a webhook into the conversation [QST-2]", async () => {
    const platforms = { alerts: { kind: "webhook", worker: "Agent" } as never };
    await using app = await openApp({ config: { engines: buildFakeEngines(), platforms } });
    const run = await startAskingRun(app);
    const hook = (text: string) => app.call("POST /hooks/alerts", { id: crypto.randomUUID(), text });
    const { message_id } = await hook("Something happened");
    for (const options of [["Yes", "No"], []]) {
      const asked = { message_id, text: "Repair it?", options };
      const { id } = await app.call("POST /api/questions", asked);
      expect((await app.call(`GET /api/questions/${id}`)).session_key).toBe("alerts:main");
      for (const text of ["Yes", "1", "/answer Yes", "!answer Yes"]) await hook(text);
      await waitUntil("all of it is routed", async () => {
        return (await app.call("GET /api/messages/inbound?status=received,feeding")).length === 0;
      });
      expect((await app.call(`GET /api/questions/${id}`)).status).toBe("open");
      await app.call(`POST /api/questions/${id}/cancel`, {});
    }
    await run.end();
  });

  it("a run asks and reads only in its own conversation, with any scopes", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startAskingRun(app, { scopes: ["*:*"] });
    const reader = await startAskingRun(app, { name: "Reader", scopes: ["read:*"] });
    const { id } = await run.ask();
    expect((await app.send(`GET /api/questions/${id}`, undefined, run.headers)).status).toBe(200);
    for (const path of [id, `${id}/wait?timeout_ms=0`]) {
      expect((await app.send(`GET /api/questions/${path}`, undefined, reader.headers)).status).toBe(404);
    }
    expect((await app.send("GET /api/questions", undefined, reader.headers)).body).toEqual([]);
    const foreign = `GET /api/questions?session_key=${reader.sessionKey}`;
    expect((await app.send(foreign, undefined, run.headers)).body).toEqual([]);
    const ask = (message_id: string, from: AskingRun) =>
      app.send("POST /api/questions", { message_id, text: "Which?" }, from.headers);
    expect((await ask(reader.messageId, run)).status).toBe(404);
    expect((await ask("anything", run)).status).toBe(404);
    expect((await ask(reader.messageId, reader)).status).toBe(403);
    await run.end();
    await reader.end();
  });

  it("users answer with write:questions: operators have it, viewers don't, and tokens only if listed", async () => {
    await using app = await openApp({ inMemory: true });
    const viewer = await createUser(app, "Vera", "viewer");
    const operator = await createUser(app, "Otto", "operator");
    const token = await createToken(app, "bot", ["write:questions"]);
    const poor = await createToken(app, "poor", ["read:*", "write:chat"]);
    const give = async (headers: Record<string, string>) => {
      const { id } = await app.call("POST /api/questions", { message_id: "m", text: "Which?" });
      return await app.send(`POST /api/questions/${id}/answer`, { answer: "This" }, headers);
    };
    expect((await give(viewer.headers)).status).toBe(403);
    expect((await give(poor.headers)).status).toBe(403);
    expect((await give(operator.headers)).body.answered_by).toBe("user:Otto");
    expect((await give(token.headers)).body.answered_by).toBe("token:bot");
  });
});

async function callMcp(app: App, run: AskingRun, method: string, params: Json): Promise<string> {
  const response = await app.server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: {
        ...run.headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    }),
  );
  return await response.text();
}
