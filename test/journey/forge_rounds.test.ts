// A branch that an agent really pushed, and the events that a forge sends about it.
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { readText } from "../harness/house/tree.ts";
import { runScenario, World } from "../harness/model/scenario.ts";
import type { Client, Json } from "../harness/service/client.ts";
import { git, startGitServer } from "../harness/service/git_server.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitForValue } from "../harness/wait.ts";
import { FakeForge, FORGE_KEY, FORGE_SECRET, signGitHub } from "../platform/fakes/forge.ts";

const EVENTS: Record<string, Json> = JSON.parse(readText("test/fixtures/forges/github.json"));
const OCTOCAT = 21_031_067;
// SVC_TEST_FAULT_SEEDS adds kills.
const KILLS = 3 * Number(Deno.env.get("SVC_TEST_FAULT_SEEDS") ?? 1);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

vi.setConfig({ testTimeout: 120_000 + KILLS * 20_000 });

// Replaces the default engine of a world by the one of the configuration file.
const env = { SVC_ENGINES__DEFAULT: "agent" };

interface Place extends AsyncDisposable {
  repository: Awaited<ReturnType<typeof startGitServer>>;
  forge: FakeForge;
  args: string[];
}

/** Starts a git server and the interface of a forge, and writes the configuration of a service for them. */
async function openPlace(rounds: number): Promise<Place> {
  const folder = await createTempDir();
  const repository = await startGitServer({ dir: folder.path });
  const forge = new FakeForge();
  const config = join(folder.path, "svc.yaml");
  const script = 'cat > "prompt-$SVC_EXECUTION_ID"; echo "It is done in $SVC_EXECUTION_ID."';
  const settings = {
    engines: { default: "agent", agent: { kind: "command", command: "sh", args: ["-c", script] } },
    platforms: {
      forge: {
        ...{ kind: "webhook", preset: "github", worker: "Ada", secret: FORGE_SECRET },
        ...{ allow: [OCTOCAT], gateway: "forge", rounds },
      },
    },
    gateways: {
      forge: {
        ...{ kind: "http", upstream: forge.url, secret: "forge-key" },
        ...{ header: "authorization: Bearer {secret}", allow: ["GET /user"] },
      },
    },
  };
  await Deno.writeTextFile(config, JSON.stringify(settings));
  return {
    repository,
    forge,
    args: ["-c", config],
    async [Symbol.asyncDispose]() {
      await forge[Symbol.asyncDispose]();
      await repository[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function createAda({ api }: World, { repository }: Place): Promise<string> {
  await api.call("PUT /api/secrets/forge-key", { value: FORGE_KEY });
  const repo = { url: repository.url, push: "auto" };
  return (await api.call("POST /api/workers", { name: "Ada", repo })).id;
}

async function send({ server }: World, name: string, payload: Json): Promise<Json> {
  const body = JSON.stringify(payload);
  const headers = signGitHub(body, name.split(".")[0] ?? "");
  const response = await fetch(`${server.url}/hooks/forge`, { method: "POST", body, headers });
  return await response.json();
}

function openIssue({ repository }: Place): Json {
  const payload = structuredClone(EVENTS["issues.opened"]);
  payload.repository.html_url = repository.url;
  return payload;
}

function failCheck({ repository }: Place, tree: Json, name: string): Json {
  const payload = structuredClone(EVENTS["check_run.completed"]);
  payload.repository.html_url = repository.url;
  Object.assign(payload.check_run, { name, head_sha: tree.pushed_commit });
  payload.check_run.check_suite.head_branch = tree.branch;
  return payload;
}

/** Waits until nothing is left to do and all is pushed, and returns the worktree of the issue. */
async function settle(api: Client, workerId: string): Promise<Json> {
  return await waitForValue(async () => {
    const open: Json[] = await api.call(`GET /api/tasks?worker_id=${workerId}&status=pending,running`);
    const messages: Json[] = await api.call("GET /api/messages/inbound?page_size=100");
    const replies: Json[] = await api.call("GET /api/messages/outbound?page_size=100");
    const trees: Json[] = await api.call(`GET /api/workers/${workerId}/trees`);
    const tree = trees.find(({ session_key }) => session_key === "forge:Codertocat/Hello-World#1");
    const isDone = open.length === 0 && tree !== undefined && tree.push === "" &&
      tree.pushed_commit === tree.head_commit && replies.length === messages.length &&
      replies.every(({ status }) => status === "sent");
    return isDone ? tree : null;
  }, 60_000);
}

it("a failed check comes back to the agent whose push it is about, and to the inbox after the rounds [FRG-1]", async () => {
  await using place = await openPlace(3);
  await using world = await World.serve({ args: place.args, env });
  const ada = await createAda(world, place);
  await send(world, "issues.opened", openIssue(place));
  let tree = await settle(world.api, ada);
  const first = tree;
  for (const name of ["lint", "test", "build"]) {
    await send(world, "check_run.completed", failCheck(place, tree, name));
    tree = await settle(world.api, ada);
    const prompts = await git(place.repository.dir, "grep", "-l", name, tree.branch);
    expect(prompts.split("\n")).toHaveLength(1);
  }
  const files = await git(place.repository.dir, "ls-tree", "--name-only", tree.branch);
  expect(files.split("\n").filter((file) => file.startsWith("prompt-"))).toHaveLength(4);
  expect(await send(world, "check_run.completed", failCheck(place, tree, "docs"))).toEqual({
    status: "ignored",
    reason: "after 3 rounds it is in the inbox",
  });
  const items: Json[] = await world.api.call("GET /api/inbox");
  expect(items.filter(({ kind }) => kind === "rounds_over")).toMatchObject([{ title: tree.branch }]);
  // A check of an older commit is a conversation of the forge.
  await send(world, "check_run.completed", failCheck(place, first, "old"));
  const [message]: Json[] = await world.api.call("GET /api/messages/inbound?page_size=1");
  expect(message.session_key).toBe("forge:Codertocat/Hello-World#2");
});

it(`${KILLS} kills while checks come back: each is one run, one push and one comment (seed ${SEED}) [FRG-1]`, async () => {
  await using place = await openPlace(KILLS + 1);
  await runScenario<{ ada: string; tree: Json; sent: Json }>({
    args: place.args,
    env,
    seed: SEED,
    rounds: KILLS,
    fault: { kind: "kill after the action", afterMs: ({ chance }) => chance() * 600 },
    setup: async (world) => {
      const ada = await createAda(world, place);
      await send(world, "issues.opened", openIssue(place));
      return { ada, tree: await settle(world.api, ada), sent: null };
    },
    action: async (world, state, round) => {
      state.sent = failCheck(place, state.tree, `check ${round}.`);
      expect(await send(world, "check_run.completed", state.sent)).toMatchObject({ status: "queued" });
    },
    restarted: async (world, state) => {
      // The forge may not have read the answer.
      await send(world, "check_run.completed", state.sent);
      state.tree = await settle(world.api, state.ada);
    },
    check: async ({ api }, { tree }) => {
      const messages: Json[] = await api.call("GET /api/messages/inbound?page_size=100");
      expect(messages).toHaveLength(KILLS + 1);
      const branch = tree.branch;
      for (let round = 0; round < KILLS; round++) {
        const prompts = await git(place.repository.dir, "grep", "-l", `check ${round}\\.`, branch);
        expect(prompts.split("\n").length).toBeGreaterThanOrEqual(1);
      }
      expect(await git(place.repository.dir, "rev-parse", branch)).toBe(tree.head_commit);
      expect(place.forge.comments).toHaveLength(KILLS + 1);
    },
  });
});
