import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../harness/house/tree.ts";
import { buildLimitResponse } from "./limit_response.ts";
import { describePins, type Pin, PINS, selectPins } from "./pins.ts";
import { Rig, type WarmPin } from "./rig.ts";

// Real CLIs with a scripted model. They take minutes and need installed packages; `make test-engines` sets
// these variables.
const full = new Set(selectPins().map(({ kind }) => kind));
const brief = new Set(selectPins("SVC_TEST_ENGINES_BRIEF").map(({ kind }) => kind));
const isEveryEngine = full.size === PINS.length;
const engines = PINS.filter(({ kind }) => full.has(kind) || brief.has(kind));
// Warm engines run every cell in a full matrix, and only the short cells in a brief one.
const inFull = (pin: Pin & { warm?: object }) =>
  isEveryEngine || pin.warm === undefined && full.has(pin.kind);

const STAYING = ["claude", "codex"];
/** Each engine, and again as a warm engine if it can stay open. */
const WAYS = engines.flatMap((pin): (WarmPin & { way: string })[] => [
  { ...pin, way: "a turn each" },
  ...(STAYING.includes(pin.kind) && full.has(pin.kind) ? [{ ...pin, way: "staying open", warm: {} }] : []),
]);

/** Returns the engine's own tool call that writes a file. */
function buildWriteCall(kind: string, path: string): string {
  const call = (tool: string, args: object) => `[[call:${tool} ${JSON.stringify(args)}]]`;
  switch (kind) {
    case "claude":
      return call("Write", { file_path: path, content: "in" });
    case "gemini":
    case "qwen":
      return call("write_file", { file_path: path, content: "in" });
    case "opencode":
      return call("write", { filePath: path, content: "in" });
    case "copilot":
      return call("create", { path, file_text: "in" });
    default:
      return `[[tool:echo in > ${path}]]`;
  }
}

/** Defines a cell that always runs, or only in the full matrix. */
function cell(pin: Pin, always = false) {
  return it.skipIf(!always && !inFull(pin));
}

describePins("$kind $version $way", WAYS, 300_000, (pin) => {
  cell(pin, true)("replies with a session, usage and a version", async () => {
    await using rig = await Rig.open(pin);
    const { execution, log } = await rig.say("Say hello.");
    expect(execution, log).toMatchObject({
      status: "completed",
      result: "STUB-OK final answer",
      usage: { input_tokens: 150, output_tokens: 40 },
    });
    expect(await rig.contexts()).toMatchObject([{ session_id: execution.session_id, engine: pin.kind }]);
    expect(execution.session_id).not.toBe(execution.session_key);
    expect(log).toMatch(/Z STUB-OK final answer\n/);
    const status = await rig.app.call(`GET /api/workers/${rig.worker.id}/status`);
    expect(status).toMatchObject({ usable: true, version: pin.version });
    expect(await rig.leftovers()).toEqual([]);
  });

  cell(pin)("continues its session, and counts the usage of each run separately", async () => {
    await using rig = await Rig.open(pin);
    const first = (await rig.say("This is [[id:first-word]].")).execution;
    const { execution, log } = await rig.say("What did I say? [[recall]]");
    expect(execution.result, log).toMatch(/recall: first-word \| user texts: 2/);
    expect(execution.session_id).toBe(first.session_id);
    expect(execution.usage).toEqual(first.usage);
  });

  cell(pin, true)("calls a tool that writes into the work directory", async () => {
    await using rig = await Rig.open(pin);
    const { execution, log } = await rig.say(
      "Write it. [[say:I write it now.]] [[tool:echo hi > out.txt && cat out.txt]]",
    );
    expect(execution, log).toMatchObject({ status: "completed" });
    expect(await Deno.readTextFile(rig.file("out.txt"))).toBe("hi\n");
    expect(log).toMatch(/Z I write it now\.\n\S+Z > \S+: echo hi > out\.txt && cat out\.txt\n\S+Z < hi/);
  });

  cell(pin)("calls the service's tools over MCP, with its own token", async () => {
    await using rig = await Rig.open(pin);
    const { execution, log } = await rig.say("Who is there? [[call:worker_list {}]]");
    expect(execution, log).toMatchObject({ status: "completed" });
    expect(log).toContain(rig.worker.id);
    const refused = await rig.say("And now? [[call:execution_list {}]]");
    expect(refused.execution.result, refused.log).toMatch(/STUB-NO-TOOL|no tool/);
  });

  cell(pin)("calls svc by the PATH of its shell, and by SVC_CTL", async () => {
    await using rig = await Rig.open(pin);
    const { log } = await rig.say(
      'Ask. [[tool:svc ctl worker list -q > path.txt; "$SVC_CTL" ctl worker list -q > var.txt]]',
    );
    for (const name of ["path.txt", "var.txt"]) {
      expect(await Deno.readTextFile(rig.file(name)), log).toBe(`${rig.worker.id}\n`);
    }
  });

  cell(pin)("sends a message and a file to its conversation while it works", async () => {
    await using rig = await Rig.open(pin);
    const send = 'svc ctl message send --message-id "$SVC_MESSAGE_ID"';
    const words =
      `echo "half of it" | ${send} --stdin && echo data > report.txt && ${send} --media-path report.txt`;
    const { execution, log } = await rig.say(`Work. [[tool:${words}]] [[text:all of it]]`);
    const messages = await rig.app.call(`GET /api/local/sessions/${rig.session.id}/messages`);
    expect(messages.slice(1), log).toMatchObject([
      { role: "bee", content: "half of it" },
      { role: "bee", media: { name: expect.stringMatching(/report\.txt$/), size: 5 } },
      { role: "bee", content: execution.result },
    ]);
    const sent = await rig.app.call(`GET /api/messages/outbound?session_key=local:${rig.session.id}`);
    expect(sent).toHaveLength(3);
    for (const { source_type, source_id } of sent) {
      expect({ source_type, source_id }).toEqual({ source_type: "worker", source_id: rig.worker.id });
    }
  });

  cell(pin)("reports a refused login to the user", async () => {
    await using rig = await Rig.open(pin);
    const { execution, log } = await rig.say("Hello. [[error401]]");
    expect(execution, log).toMatchObject({ status: "failed", failure: "engine_error" });
    expect(execution.error).toMatch(/^auth: .*401/);
    const messages = await rig.app.call(`GET /api/local/sessions/${rig.session.id}/messages`);
    expect(messages.at(-1).content).toMatch(/^Ada failed: engine_error, auth: /);
  });

  cell(pin)("completes if the model fails only once", async () => {
    await using rig = await Rig.open(pin);
    const { execution, log } = await rig.say("Hello. [[error500:1]]");
    expect(execution, log).toMatchObject({ status: "completed", result: "STUB-OK final answer" });
  });

  cell(pin)(
    "waits at the model's rate limit, and continues its session afterwards",
    async () => {
      // Claude Code gets a reset time only with a subscription login.
      const env = pin.kind === "claude" ? { ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "stub" } : {};
      await using rig = await Rig.open(pin, { env, timeout: "4m" });
      const first = (await rig.say("This is [[id:first-word]].")).execution;
      const reset = Date.now() + 3_600_000;
      rig.model.limit = () => buildLimitResponse(pin.kind, reset);
      await rig.send("And this is [[id:second-word]]. [[recall]]");
      await rig.app.until("engine.limited", 1, 250_000);
      const { execution, log } = await rig.latest();
      expect(execution, log).toMatchObject({ failure: "rate_limited", session_id: first.session_id });
      const [task] = await rig.app.call(`GET /api/tasks?worker_id=${rig.worker.id}&status=pending`);
      expect(task).toMatchObject({
        reason: expect.stringContaining(`${pin.kind} is rate limited`),
        attempt: 0,
      });
      const row = await rig.app.db.first<{ until: number }>("select until from rate_limit");
      // Providers give the time to the minute or count from the response.
      expect(Math.abs((row?.until ?? 0) - reset), log).toBeLessThan(180_000);
      rig.model.limit = null;
      await rig.app.db.write([
        { sql: "update rate_limit set until = 1", args: [] },
        { sql: "update task set due_at = 1 where status = 'pending'", args: [] },
      ]);
      rig.app.server.dispatcher.stage.wake();
      await rig.app.settle(170_000);
      const last = await rig.latest();
      expect(last.execution, last.log).toMatchObject({ status: "completed", session_id: first.session_id });
      expect(last.execution.result).toMatch(/recall: first-word,(second-word,)?second-word \|/);
    },
  );

  cell(pin)("ends at its time limit if the model never responds, and leaves no process", async () => {
    await using rig = await Rig.open(pin, { timeout: "12s" });
    const { execution } = await rig.say("Hello? [[hang]]");
    expect(execution).toMatchObject({ status: "failed", failure: "timeout" });
    expect(await rig.leftovers()).toEqual([]);
  });

  cell(pin, true)("leaves no process if cancelled during a tool whose child ignores signals", async () => {
    await using rig = await Rig.open(pin);
    // A few engines repeat the text of a cancelled turn in the next one, so the tool must not wait again.
    const stubborn =
      "[ -e started ] && exit; (trap '' INT TERM HUP; tail -f /dev/null) & touch started; tail -f /dev/null";
    await rig.send(`Wait. [[tool:${stubborn}]]`);
    await rig.untilFile("started");
    expect((await rig.leftovers()).length).toBeGreaterThan(2);
    const [{ id }] = await rig.app.call("GET /api/executions");
    const cancelled = await rig.app.call(`POST /api/executions/${id}/cancel`);
    expect(cancelled).toMatchObject({ status: "failed", failure: "cancelled" });
    expect(await rig.leftovers()).toEqual([]);
    // The session still exists and contains the question.
    const { execution, log } = await rig.say("And now? [[recall]]");
    expect(execution, log).toMatchObject({ status: "completed" });
  });

  cell(pin)("starts a new session with the history if the engine has lost its session", async () => {
    await using rig = await Rig.open(pin);
    const first = (await rig.say("This is [[id:first-word]].")).execution;
    await rig.forget();
    const { execution, log } = await rig.say("What did I say? [[recall]]");
    expect(log).toMatch(/\[the engine lost the session/);
    expect(execution.result, log).toMatch(/recall: first-word \| user texts: 1/);
    expect(execution.session_id).not.toBe(first.session_id);
    expect(await rig.contexts()).toMatchObject([{ session_id: execution.session_id }]);
  });

  cell(pin)(
    "permissions: edit writes only in the work directory and calls svc",
    async () => {
      await using rig = await Rig.open(pin, { permissions: "edit" });
      const outside = await Deno.makeTempDir({ prefix: "svc-outside-", dir: join(ROOT, ".cache") });
      const { log } = await rig.say(`Write. ${buildWriteCall(pin.kind, rig.file("in.txt"))}`);
      expect(await Deno.readTextFile(rig.file("in.txt")), log).toMatch(/^in\n?$/);
      const asked = await rig.say("Ask. [[tool:svc ctl worker list -q]]");
      expect(asked.execution.result, asked.log).toContain(rig.worker.id);
      // goose has no mode between all and none (docs/reference/engines.md).
      if (pin.kind !== "goose") {
        const refused = await rig.say(`Leave. [[tool:touch ${outside}/out.txt]]`);
        expect(refused.execution.status, refused.log).toBe("completed");
        expect([...Deno.readDirSync(outside)], refused.log).toEqual([]);
      }
      await Deno.remove(outside, { recursive: true });
    },
  );

  cell(pin)("permissions: read changes nothing", async () => {
    await using rig = await Rig.open(pin, { permissions: "read" });
    for (const words of [buildWriteCall(pin.kind, rig.file("in.txt")), "[[tool:touch in.txt]]"]) {
      const { log } = await rig.say(`Write. ${words}`);
      expect([...Deno.readDirSync(rig.worker.work_dir)].map(({ name }) => name), log).not.toContain("in.txt");
    }
  });

  cell(pin)("takes a prompt of 200 KB with quotes and leading dashes", async () => {
    // The window of the other model is too small.
    await using rig = await Rig.open(pin, { env: { COPILOT_MODEL: "gpt-5.4" } });
    const filler = `--dash -x "quoted" 'single' \`tick\` $HOME \\ %s ü €\n`.repeat(3_900).slice(0, 200_000);
    const { execution, log } = await rig.say(
      `--leading BEGIN-MARK\n${filler}\n[[seen:BEGIN-MARK]] [[text:ALL-THERE]]`,
    );
    expect(execution.result, log.slice(-2_000)).toMatch(/^ALL-THERE \| seen in: (messages|input|contents)/);
  });
});
