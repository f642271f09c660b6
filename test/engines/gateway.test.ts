import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { type GatewayKind } from "../../src/domain/call/vocabulary.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { findText } from "../harness/model/found_text.ts";
import { listWorkerProcesses } from "../harness/model/marked.ts";
import { describePins, selectPins } from "./pins.ts";
import { GATEWAY_SECRET, Rig, type WarmPin } from "./rig.ts";

const KINDS: Record<string, GatewayKind> = {
  ...{ claude: "anthropic", codex: "openai", qwen: "openai", copilot: "openai", goose: "openai" },
  ...{ opencode: "openai", gemini: "http" },
};
// Engines that can stay open.
const STAYING = ["claude", "codex"];

const fault = await findBoxFault(BOX_SETTINGS);

const pins = selectPins().flatMap((pin): (WarmPin & { way: string; box?: "none" })[] => {
  const ways = [
    { ...pin, way: "one process per turn" },
    ...(STAYING.includes(pin.kind) ? [{ ...pin, way: "staying open", warm: {} }] : []),
  ];
  // A box without a network reaches the model only through the gateway.
  return [...ways, ...ways.map((one) => ({ ...one, way: `${one.way}, in a box`, box: "none" as const }))];
});

/** Returns the keys for gateways that the processes of a worker hold. */
async function findGatewayKeys(workerId: string): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const pid of await listWorkerProcesses(workerId)) {
    const environment = await Deno.readTextFile(`/proc/${pid}/environ`).catch(() => "");
    const key = /\0SVC_GATEWAY_KEY=([^\0]*)/.exec(`\0${environment}`)?.[1];
    if (key !== undefined) keys.add(key);
  }
  return keys;
}

// The agent copies what the environment of each process of its run shows into its directory, which is part of the data directory.
const LOOK = "[[tool:cat /proc/[0-9]*/environ > seen; touch looked]]";

describePins("$kind $version through a gateway, $way", pins, 300_000, (pin) => {
  const isSkipped = pin.box !== undefined && fault !== null;
  const options = { gateway: KINDS[pin.kind] ?? "http", ...(pin.box === undefined ? {} : { box: pin.box }) };

  it.skipIf(isSkipped)(
    "works with the token of its run, and never sees the key that the model gets",
    async () => {
      const { gateway } = options;
      await using rig = await Rig.open(pin, options);
      const keys = new Set<string>();
      let answers = 0;
      rig.model.onRequest = (request) => {
        const { headers, url } = request;
        keys.add(
          headers.get("x-api-key") ?? headers.get("x-goog-api-key") ?? headers.get("authorization") ?? "",
        );
        if (!url.includes("ount")) answers++;
      };
      const first = await rig.say(`${LOOK} [[id:one]]`);
      expect(first.execution, first.log).toMatchObject({ status: "completed" });
      const second = await rig.say("[[recall]]");
      expect(second.execution, second.log).toMatchObject({ status: "completed", result: /one/ });
      expect([...keys]).toEqual([gateway === "openai" ? `Bearer ${GATEWAY_SECRET}` : GATEWAY_SECRET]);
      if (gateway !== "http") {
        const executions = await rig.app.call("GET /api/executions");
        const tokens = executions.map(({ usage }: typeof first.execution) =>
          usage.input_tokens + usage.output_tokens
        );
        expect(tokens.reduce((sum: number, one: number) => sum + one, 0)).toBe(190 * answers);
      }
      expect(await Deno.readTextFile(rig.file("seen"))).toContain("SVC_RUN_ID=");
      expect(await findText(rig.app.dataDir, GATEWAY_SECRET)).toEqual([]);
      if (!("warm" in pin)) return;
      // The key of an open process is valid during its runs only.
      const idle = await findGatewayKeys(rig.worker.id);
      expect(idle.size).toBe(1);
      for (const key of idle) {
        const answer = await fetch(`${rig.app.url}/gateway/model/v1/models`, {
          headers: { "x-api-key": key },
        });
        expect(answer.status).toBe(401);
        const other = await fetch(`${rig.app.url}/api/workers`, {
          headers: { authorization: `Bearer ${key}` },
        });
        expect(other.status).toBe(401);
      }
    },
  );

  it.skipIf(isSkipped || !STAYING.includes(pin.kind))(
    "ends in the middle of a run by the gateway's count",
    async () => {
      await using rig = await Rig.open(pin, options);
      const { app } = rig;
      await app.call("POST /api/budgets", {
        name: "T",
        unit: "tokens",
        limit: 400,
        period: "24h",
        action: "stop",
      });
      const steps = Array.from({ length: 8 }, (_, index) => `[[tool:sleep 1; echo ${index} >> steps]]`);
      await rig.send(steps.join(" "));
      await app.until("task.failed", 1, 120_000);
      const { execution, log } = await rig.latest();
      expect(execution, log).toMatchObject({ failure: "budget" });
      const tokens = execution.usage.input_tokens + execution.usage.output_tokens;
      // By one answer at most.
      expect(tokens).toBeGreaterThanOrEqual(400);
      expect(tokens).toBeLessThan(400 + 190);
      expect(await app.db.readValue("select tokens from ledger where target = 'global'")).toBe(tokens);
    },
  );
});
