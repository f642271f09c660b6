import { afterEach, describe, expect, it, vi } from "vitest";
import { RecentActivity } from "../../src/base/recent_activity.ts";
import { maskText } from "../../src/engine/process/masked_text.ts";
import { findSecrets, holdsKey } from "../../src/run/secrets.ts";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";

const FAKE_CLAUDE = new URL("../harness/fakes/fake_claude.sh", import.meta.url).pathname;
// No other text contains a part of the key.
const KEY = `sk-${crypto.randomUUID()}${crypto.randomUUID()}${crypto.randomUUID()}`.slice(0, 100);

/** Finds the parts of the key, 12 letters each, that a text shows. */
function partsIn(text: string): string[] {
  const parts = Array.from({ length: KEY.length - 11 }, (_, at) => KEY.slice(at, at + 12));
  return parts.filter((part) => text.includes(part));
}

afterEach(() => void vi.restoreAllMocks());

describe("keys [SEC-2, SEC-3]", () => {
  it.each([20, 550, 950])(
    "masks a key after %i letters whose end is cut off, in all parts [SEC-3]",
    async (letters) => {
      const claude = { command: FAKE_CLAUDE, permissions: "full", env: { ANTHROPIC_API_KEY: KEY } };
      await using app = await openApp({ config: { engines: { default: "claude", claude } } });
      const note = vi.spyOn(RecentActivity.prototype, "note");
      const worker = await app.call("POST /api/workers", { name: "Ada" });
      const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
      await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: `cut ${letters}` });
      await app.settle();
      const [execution] = await app.call("GET /api/executions");
      const log: string = await app.call(`GET /api/executions/${execution.id}/logs`);
      const raw: string = await app.call(`GET /api/executions/${execution.id}/logs?raw=true`);
      const journal = await app.db.read("select * from journal");
      const replies = await app.db.read("select * from outbound_message");
      const steps = note.mock.calls.map(([, words]) => words);
      expect(execution).toMatchObject({ status: "failed", error: expect.stringContaining("xxxx") });
      expect(log).toMatch(/> Bash: x+[\s\S]*< x+[\s\S]*it starts with x+/);
      expect(steps).toEqual([expect.stringMatching(/^Runs x+/)]);
      for (const [where, shown] of Object.entries({ steps, log, raw, execution, journal, replies })) {
        expect(partsIn(JSON.stringify(shown)), where).toEqual([]);
      }
    },
  );

  it("masks a whole secret, a secret without its start, and a secret that was cut", () => {
    const secret = "abcdefghijklmnopqrstuvwxyz";
    const start = secret.slice(0, 15);
    const masked = (text: string) => maskText([secret], text);
    expect(masked(`${secret}, ${secret}${secret}`)).toBe(`${"*".repeat(26)}, ${"*".repeat(52)}`);
    expect(masked(`${secret.slice(-12)} and ${secret.slice(-13)}`)).toBe(
      `${"*".repeat(12)} and ${"*".repeat(13)}`,
    );
    for (const mark of ["", "…", " …", " … (log in)", "\n[cut: 9 bytes in all]"]) {
      expect(masked(`${start} ${start}${mark}`)).toBe(`${start} ${"*".repeat(15)}${mark}`);
    }
    // Too few letters to be recognized as a part.
    expect(masked(`${secret.slice(-11)} ${secret.slice(0, 11)}`)).toBe("pqrstuvwxyz abcdefghijk");
  });

  it("masks keys inside of a JSON variable, and hides them from checks [SEC-3]", async () => {
    const content = JSON.stringify({ provider: { anthropic: { options: { apiKey: KEY } } } });
    const fake = {
      kind: "command",
      command: FAKE_AGENT,
      shell: [],
      env: { OPENCODE_CONFIG_CONTENT: content },
    };
    await using app = await openApp({ config: { engines: { default: "fake", fake } } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const verify = { command: ["sh", "-c", "echo CHECK; env"], attempts: 0 };
    const body = {
      message_id: "m",
      worker_id: worker.id,
      instruction: "env-dump",
      type: "immediate",
      verify,
    };
    await app.call("POST /api/tasks", body);
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    const log: string = await app.call(`GET /api/executions/${execution.id}/logs`);
    const [byAgent = "", byCheck = ""] = log.split("CHECK\n");
    expect(byAgent).toContain("OPENCODE_CONFIG_CONTENT=");
    expect(partsIn(log + execution.result)).toEqual([]);
    expect(byCheck).toContain("SVC_RUN_ID=");
    expect(byCheck).not.toContain("OPENCODE_CONFIG_CONTENT");
  });

  it("finds every value below a key name in JSON, at any depth, also in its JSON form", () => {
    const value = JSON.stringify({
      model: "a-model-of-somebody",
      mcp: [{ tokens: { one: "first-of-the-keys", two: ["second\nof the keys", 7, null, "short"] } }],
    });
    expect(
      findSecrets({ A: value, B: "{no JSON: KEY-0123456789}", MY_KEY: "third-of-the-keys", KEY: "short" }),
    )
      .toEqual(["first-of-the-keys", "second\nof the keys", "second\\nof the keys", "third-of-the-keys"]);
    expect([holdsKey("A", value), holdsKey("A", '{"apiKey":"x"}'), holdsKey("KEY", "")]).toEqual([
      true,
      true,
      true,
    ]);
    expect([holdsKey("A", '{"max_tokens":9}'), holdsKey("A", '["apiKey"]'), holdsKey("A", "")])
      .toEqual([false, false, false]);
  });
});
