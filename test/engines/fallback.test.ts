import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { type Model, startModel } from "./model.ts";
import { PINS, selectPins } from "./pins.ts";
import { buildEngineSettings } from "./rig.ts";
import { buildLimitResponse } from "./limit_response.ts";

const KINDS = ["claude", "codex"] as const;
const hasBoth = KINDS.every((kind) => selectPins().some((pin) => pin.kind === kind));
const HOUR_MS = 3_600_000;

// Each of the two real CLIs has its own model, so that only one provider refuses requests.
describe.runIf(hasBoth)("fallback between real engines (SVC_TEST_ENGINES=claude,codex)", () => {
  const models: Partial<Record<string, Model>> = {};
  beforeAll(async () => {
    for (const kind of KINDS) models[kind] = await startModel();
  });
  afterAll(async () => {
    for (const model of Object.values(models)) await model?.[Symbol.asyncDispose]();
  });

  async function open(first: string, second: string): Promise<App> {
    const build = async (kind: string) => {
      const pin = PINS.find((one) => one.kind === kind);
      if (pin === undefined) throw new Error(`no engine is called ${kind}`);
      // Claude Code gets a reset time only with a subscription login.
      const env = kind === "claude" ? { ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "stub" } : {};
      return await buildEngineSettings(pin, models[kind]?.url ?? "", { env, timeout: "4m" });
    };
    return await openApp({
      config: {
        engines: {
          default: first,
          [first]: { ...await build(first), fallback: [second] },
          [second]: await build(second),
        },
      },
    });
  }

  it.each([["claude", "codex"], ["codex", "claude"]])(
    "%s meets a limit of an hour, %s does the run, and the first continues its own session with what it missed",
    async (first, second) => {
      await using app = await open(first, second);
      const worker = await app.call("POST /api/workers", { name: "Ada", fallback: true });
      const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
      const say = async (content: string) => {
        await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
        await app.settle(250_000);
        const [execution] = await app.call("GET /api/executions");
        const log = await app.call(`GET /api/executions/${execution.id}/logs`);
        const messages = await app.call(`GET /api/local/sessions/${session.id}/messages`);
        return { execution, log, reply: messages.at(-1).content as string };
      };
      const model = models[first];
      if (model === undefined) throw new Error("no model");
      const before = await say("This is [[id:first-word]].");
      expect(before.execution, before.log).toMatchObject({ engine: first, status: "completed" });
      model.limit = () => buildLimitResponse(first, Date.now() + HOUR_MS);
      const other = await say("This is [[id:second-word]]. [[recall]]");
      expect(other.execution, other.log).toMatchObject({
        ...{ engine: second, fallback_from: first, status: "completed" },
      });
      // The other engine has read the recent messages.
      expect(other.execution.result).toMatch(/recall: first-word,second-word \|/);
      expect(other.reply).toMatch(new RegExp(`^${second} replaces ${first}, .*\n\n`));
      model.limit = null;
      await app.call(`POST /api/engines/${first}/lift`, {});
      const back = await say("This is [[id:third-word]]. [[recall]]");
      expect(back.execution, back.log).toMatchObject({
        ...{ engine: first, fallback_from: "", status: "completed" },
        session_id: before.execution.session_id,
      });
      expect(back.execution.result).toMatch(/recall: first-word,(second-word,)+third-word \|/);
    },
    300_000,
  );
});

it.skipIf(hasBoth)("needs two real CLIs: SVC_TEST_ENGINES=claude,codex", () => {});
