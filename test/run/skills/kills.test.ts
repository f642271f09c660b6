import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { FaultPoint } from "../../../src/base/fault_point.ts";
import { runScenario } from "../../harness/model/scenario.ts";
import { startGitServer } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { SKILL_FILES } from "../../harness/service/skill_app.ts";
import { waitForValue } from "../../harness/wait.ts";

// Each round starts a service twice. SVC_TEST_FAULT_SEEDS adds rounds.
const ROUNDS = Number(Deno.env.get("SVC_TEST_FAULT_SEEDS") ?? 1);
const POINTS = ["skill.fetched", "skill.written", "skill.kept"] as FaultPoint[];
const SCRIPT = `sh "$(dirname "$SVC_CONTEXT_FILE")"/skills/weigh-parcels/scripts/run.sh`;

vi.setConfig({ testTimeout: 120_000 + ROUNDS * 60_000 });

it.each(POINTS)(
  `a kill at %s leaves no part of a skill, and the next write and run work: ${ROUNDS} kills [SKL-1]`,
  async (point) => {
    await using folder = await createTempDir();
    await using forge = await startGitServer({ dir: folder.path });
    const ref = await forge.commit("main", SKILL_FILES);
    await runScenario<{ worker: string }>({
      env: {
        SVC_ENGINES__DEFAULT: "shell",
        SVC_ENGINES__SHELL__KIND: "command",
        SVC_ENGINES__SHELL__COMMAND: "/bin/sh",
      },
      rounds: ROUNDS,
      fault: { kind: "point", point, passage: 1 },
      setup: async ({ api }) => ({ worker: (await api.call("POST /api/workers", { name: "Ada" })).id }),
      action: async ({ api }, { worker }) => {
        const skills = [{ url: forge.url, ref, path: "weigh" }];
        await api.call(`PUT /api/workers/${worker}`, { skills }).catch(() => {});
      },
      restarted: async ({ api, dataDir }, { worker }, round) => {
        expect((await api.call(`GET /api/workers/${worker}`)).skills).toEqual([]);
        const skills = [{ url: forge.url, ref, path: "weigh" }];
        const [skill] = (await api.call(`PUT /api/workers/${worker}`, { skills })).skills;
        const names = [...Deno.readDirSync(join(dataDir, "skills"))].map(({ name }) => name);
        expect(names).toEqual([skill.digest]);
        const task = await api.call("POST /api/tasks", {
          ...{ message_id: `round-${round}`, worker_id: worker, instruction: SCRIPT, type: "immediate" },
        });
        const ended = await waitForValue(async () => {
          const found = await api.call(`GET /api/tasks/${task.id}`);
          return ["pending", "running"].includes(found.status) ? null : found;
        });
        const { result } = await api.call(`GET /api/executions/${ended.execution_id}`);
        expect(result).toBe("weighed");
        await api.call(`PUT /api/workers/${worker}`, { skills: [] });
        await Deno.remove(join(dataDir, "skills", skill.digest));
      },
      check: () => Promise.resolve(),
    });
  },
);
