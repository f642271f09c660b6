import { join } from "node:path";
import { waitForCalls } from "../harness/fakes/asking_claude.ts";
import { afterAll, describe, expect, it } from "vitest";
import { answerPermission } from "../../src/engine/protocol/acp_questions.ts";
import type { Order } from "../../src/engine/protocol/adapter.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { waitUntil } from "../harness/wait.ts";

const FAKE = new URL("../harness/fakes/fake_acp.ts", import.meta.url).pathname;

/** An app with the strict fake of an agent that speaks the protocol, and a conversation with it. */
async function talk(can: string, engine: object = {}) {
  const state = await Deno.makeTempDir({ prefix: "svc-test-acp-" });
  const app = await openApp({
    config: {
      limits: { stop_grace: "300ms" },
      engines: {
        default: "mine",
        mine: {
          kind: "acp",
          command: Deno.execPath(),
          args: ["run", "--quiet", "-A", FAKE],
          env: { FAKE_ACP: can, FAKE_ACP_STATE: state },
          ...engine,
        },
      },
    },
  });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const send = (words: string) =>
    app.call(`POST /api/local/sessions/${session.id}/messages`, { content: `<do>${words}</do>` });
  const latest = async () => {
    const [execution] = await app.call("GET /api/executions");
    const log: string = await app.call(`GET /api/executions/${execution.id}/logs`);
    return { execution, log };
  };
  const say = async (words: string) => {
    await send(words);
    await app.settle();
    return await latest();
  };
  // deno-lint-ignore no-explicit-any
  const heard = (method: string): any[] =>
    Deno.readTextFileSync(join(state, "heard.jsonl")).trimEnd().split("\n").map((line) => JSON.parse(line))
      .filter((line) => line.method === method);
  return {
    ...{ app, state, session, worker, send, latest, say, heard },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await Deno.remove(state, { recursive: true });
    },
  };
}

/** Waits for a question of the run, and answers it. */
async function answerQuestion(app: App, answer: string) {
  await app.until("question.opened", 1, 60_000);
  const [question] = await app.call("GET /api/questions?status=open");
  await app.call(`POST /api/questions/${question.id}/answer`, { answer });
  return question;
}

describe("engines that speak the Agent Client Protocol (decision 0011)", () => {
  it("keeps its process open for a session that it cannot load, asks in the name of each run, and survives a cancel", async () => {
    await using it = await talk("", { warm: {} });
    const first = await it.say("say hello");
    await it.send("permit execute; recall");
    const question = await answerQuestion(it.app, "Yes, once");
    await it.app.settle();
    const second = await it.latest();
    expect(second.execution, second.log).toMatchObject({
      status: "completed",
      session_id: first.execution.session_id,
      result: expect.stringMatching(/permission .*a-2.*say hello/),
    });
    expect(question.execution_id).toBe(second.execution.id);
    await it.send("hang");
    await it.app.until("execution.started", 3, 60_000);
    const { execution } = await it.latest();
    await it.app.call(`POST /api/executions/${execution.id}/cancel`, {});
    const last = await it.say("recall");
    expect(last.execution.result, last.log).toMatch(/say hello .*hang/);
    expect([it.heard("initialize"), it.heard("session/new")].map(({ length }) => length)).toEqual([1, 1]);
  });

  it("streams its answer, logs tools without thoughts, and reports its usage", async () => {
    await using it = await talk("load,mcp");
    const { execution, log } = await it.say("tool ls; say hello there");
    expect(execution, log).toMatchObject({
      status: "completed",
      result: "hello there",
      usage: { input_tokens: 10, output_tokens: 5 },
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(log).toMatch(/> Run: ls[^]*< ran ls/);
    expect(log).not.toMatch(/secret thought/);
    const [begun] = it.heard("session/new");
    expect(begun.params.cwd).toBe((await it.app.call(`GET /api/workers/${it.worker.id}`)).work_dir);
    const [server] = begun.params.mcpServers;
    expect(server).toMatchObject({ type: "http", name: "svc", url: `${it.app.url}/mcp` });
    expect(server.headers[0].value).toMatch(/^Bearer .{40,}/);
    // No log contains the token.
    expect(log).not.toContain(server.headers[0].value.slice(7));
  });

  it.each([["resume", "session/resume"], ["load", "session/load"]])(
    "resumes a session by %s, and ignores repeated messages",
    async (can, method) => {
      await using it = await talk(can);
      const first = await it.say("say one");
      const second = await it.say("recall; say two");
      expect(second.execution, second.log).toMatchObject({
        status: "completed",
        session_id: first.execution.session_id,
        result: "say onetwo",
        // Of the session's 20 tokens, 10 were used before.
        usage: { input_tokens: 10, output_tokens: 0 },
      });
      expect(second.log).not.toMatch(/replayed/);
      expect(it.heard(method)).toHaveLength(1);
    },
  );

  it("repeats the conversation for an agent that cannot resume a session, or has lost it", async () => {
    await using none = await talk("nothing");
    await none.say("say one");
    const second = await none.say("say two");
    expect(second.execution, second.log).toMatchObject({ status: "completed", result: "two" });
    expect(none.heard("session/prompt").at(-1).params.prompt[0].text).toMatch(/say one[^]*say two/);
    await using lost = await talk("resume");
    const { execution } = await lost.say("say one");
    await Deno.remove(join(lost.state, `session-${execution.session_id}.jsonl`));
    expect((await lost.say("say two")).execution).toMatchObject({ status: "completed", result: "two" });
  });

  it.each([["full", "execute"], ["edit", "edit"], ["read", "search"], [
    "read",
    "execute svc ctl worker list -n 'a b'",
  ]])(
    "with permissions %s a tool of kind %s needs no approval",
    async (permissions, kind) => {
      await using it = await talk("load", { permissions });
      const { execution, log } = await it.say(`permit ${kind}`);
      expect(execution.result, log).toBe('permission {"outcome":{"outcome":"selected","optionId":"a-2"}}');
    },
  );

  it.each([["Always", "a-1"], ["2", "a-2"], ["No", "r-1"], ["what?", "r-1"]])(
    "asks a person about other tools: %s selects %s",
    async (answer, optionId) => {
      await using it = await talk("load", { permissions: "edit" });
      await it.send("permit execute");
      const question = await answerQuestion(it.app, answer);
      expect(question).toMatchObject({
        text: "May the agent do this? Delete it all\n\nrm -r x",
        options: ["Always", "Yes, once", "No"],
        default: "No",
      });
      await it.app.settle();
      const { execution, log } = await it.latest();
      expect(execution.result, log).toBe(
        `permission {"outcome":{"outcome":"selected","optionId":"${optionId}"}}`,
      );
      expect(await it.app.call("GET /api/executions")).toHaveLength(1);
    },
  );

  it("with permissions: ask answers one call, and remembers the answer without the agent [APV-1]", async () => {
    await using it = await talk("load", { permissions: "ask" });
    const say = async (answer: string | null) => {
      await it.send("permit execute");
      if (answer !== null) {
        const [question] = await waitForCalls(it.app);
        await it.app.call(`POST /api/questions/${question?.id}/answer`, { answer });
        expect(question).toMatchObject({
          tool: "Delete it all",
          arguments: expect.stringContaining('"command": "rm -r x"'),
          options: ["Allow", "Allow in this conversation", "Deny"],
          default: "Deny",
        });
      }
      await it.app.settle();
      return (await it.latest()).execution.result;
    };
    const selected = (id: string) =>
      expect.stringContaining(`permission {"outcome":{"outcome":"selected","optionId":"${id}"}}`);
    expect(await say("Deny")).toEqual(selected("r-1"));
    expect(await say("Allow")).toEqual(selected("a-2"));
    expect(await say("Allow in this conversation")).toEqual(selected("a-2"));
    expect(await say(null)).toEqual(selected("a-2"));
  });

  it("asks at most as many concurrent questions as a run may, however many the agent sends [CHD-6]", async () => {
    let asked = 0;
    const silence = Promise.withResolvers<Response>();
    await using door = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => {
      asked++;
      return silence.promise;
    });
    const env = { SVC_URL: `http://127.0.0.1:${door.addr.port}` };
    const order = { permissions: "full", ctl: "svc", env } as unknown as Order;
    const stop = new AbortController();
    let refused = 0;
    const all = Array.from({ length: 500 }, () =>
      answerPermission(order, {}, stop.signal).then((outcome) => {
        refused++;
        return outcome;
      }));
    await waitUntil("some are asked", () => asked === 20 && refused === 480);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([asked, refused]).toEqual([20, 480]);
    stop.abort();
    for (const outcome of await Promise.all(all)) expect(outcome).toEqual({ outcome: "cancelled" });
    silence.resolve(new Response(null, { status: 500 }));
  });

  describe("a command that only looks like a call of svc", () => {
    // A refused question denies the permission.
    const door = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      () => new Response("{}", { status: 403 }),
    );
    const url = () => `http://127.0.0.1:${door.addr.port}`;
    afterAll(() => door.shutdown());

    it.each([
      "svc ctl x $(rm -r x)",
      "svc ctl x && rm -r x",
      "svc ctl x\nrm -r x",
      "svc ctlx",
      "/tmp/svc ctl x",
      '{"command":"svc ctl x","script":"rm -r x"}',
    ])(
      "needs a person: %s",
      async (command) => {
        const order = { permissions: "edit", ctl: "/data/bin/svc", env: { SVC_URL: url() } };
        const params = {
          toolCall: {
            kind: "execute",
            title: "Run",
            rawInput: command.startsWith("{") ? JSON.parse(command) : { command },
          },
          options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }, {
            optionId: "no",
            name: "No",
            kind: "reject_once",
          }],
        };
        const outcome = await answerPermission(
          order as unknown as Order,
          params,
          new AbortController().signal,
        );
        expect(outcome).toEqual({ outcome: "selected", optionId: "no" });
      },
    );
  });

  it("asks one question for each field of a form, and passes on a refusal", async () => {
    for (
      const [answer, words] of [["blue", '{"action":"accept","content":{"colour":"blue"}}'], [
        "Decline",
        '{"action":"decline"}',
      ]] as const
    ) {
      await using it = await talk("load");
      await it.send("elicit");
      const question = await answerQuestion(it.app, answer);
      expect(question).toMatchObject({
        text: "I need to know\n\nWhich colour?",
        options: ["red", "blue", "Decline"],
      });
      await it.app.settle();
      expect((await it.latest()).execution.result).toBe(`elicited ${words}`);
    }
  });

  it("ends the turn, the question and the process of a cancelled run", async () => {
    await using it = await talk("load", { permissions: "read" });
    await it.send("permit execute; hang");
    await it.app.until("question.opened", 1, 60_000);
    const [running] = await it.app.call("GET /api/executions");
    await it.app.call(`POST /api/executions/${running.id}/cancel`, {});
    await it.app.settle();
    const { execution } = await it.latest();
    expect(execution).toMatchObject({ status: "failed", failure: "cancelled" });
    expect(it.heard("session/cancel")).toHaveLength(1);
    const [question] = await it.app.call("GET /api/questions");
    expect(question.status).not.toBe("open");
  });

  it.each([
    ["v2", "say x", /setup: it speaks version 2 of the Agent Client Protocol; 1 is needed/],
    ["nologin", "say x", /auth: Authentication required \(log in with the agent's own command\)/],
    ["load", "fail 429 too many requests", /rate_limited: 429 too many requests/],
    ["load", "fail it broke", /model: it broke/],
    ["load", "stop refusal", /model: it ended its turn with refusal/],
    ["load", "die", /crashed/],
    ["load", "stop end_turn", /crashed: it said and did nothing/],
  ])("%s, %s: names the failure in the error", async (can, words, error) => {
    await using it = await talk(can);
    const { execution, log } = await it.say(words);
    expect(execution.status, log).not.toBe("completed");
    expect(execution.error).toMatch(error);
  });

  it("refuses file and terminal requests, and the turn continues", async () => {
    await using it = await talk("load");
    const { execution, log } = await it.say("write; say ok");
    expect(execution.result, log).toBe("write -32601ok");
  });
});
