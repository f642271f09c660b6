import { join } from "node:path";
import { expect, it } from "vitest";
import { formatSkill, openSkillApp } from "../../harness/service/skill_app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { ROOT } from "../../harness/house/tree.ts";

const MORE = "allowed-tools: Bash\nhooks:\n  PreToolUse: []\n";
const FILES = {
  "weigh/SKILL.md": formatSkill("weigh-parcels", "Weigh it twice.", MORE),
  "weigh/notes.md": "notes\n",
  "weigh/deep/SKILL.md": formatSkill("deep", "Deeper.", MORE),
  "weigh/.claude/settings.json": "{}",
};

/** Writes an agent that keeps its prompt, its arguments and the directory of its skills in the work directory. */
async function writeAgent(folder: string, kind: string): Promise<string> {
  const path = join(folder, kind);
  const script = `#!/bin/sh
[ "$1" = --version ] && { echo 1.0; exit 0; }
cat > prompt.txt
printf '%s\\n' "$@" > args.txt
dir=$(sed -n 's/^--add-dir=//p; /^--include-directories$/{n;p}' args.txt)
cp -r "$dir" copy
stat -c '%a %n' $(find "$dir" -type f) > modes.txt
cat ${join(ROOT, "test/engine/recorded", `${kind}.jsonl`)}
`;
  await Deno.writeTextFile(path, script, { mode: 0o755 });
  return path;
}

const KINDS: [kind: string, permissions: string, place: string, isListed: boolean][] = [
  ["claude", "edit", "copy/.claude/skills/weigh-parcels", false],
  ["claude", "full", "copy/.claude/skills/weigh-parcels", false],
  ["gemini", "edit", "copy/weigh-parcels", true],
];

it.each(KINDS)(
  "%s with permissions: %s finds its skills at %s, and the prompt lists them: %s (contract 28)",
  async (kind, permissions, place, isListed) => {
    await using folder = await createTempDir();
    const command = await writeAgent(folder.path, kind);
    const env = { ANTHROPIC_API_KEY: "key-0123456789", GEMINI_API_KEY: "key-0123456789" };
    await using world = await openSkillApp({
      files: FILES,
      config: { engines: { default: kind, [kind]: { command, permissions, env, warm: { max: 0 } } } },
    });
    const { body: ada } = await world.create([world.weigh]);
    await world.run(ada, "Weigh.");
    const read = (name: string) => Deno.readTextFile(join(ada.work_dir, name));
    const prompt = await read("prompt.txt");
    const [, path] = /- weigh-parcels: How to weigh weigh-parcels \((\/.*\/SKILL\.md)\)/.exec(prompt) ?? [];
    expect(path !== undefined, prompt).toBe(isListed);
    const skill = await read(`${place}/SKILL.md`);
    expect(skill).toContain("Weigh it twice.");
    expect(await read(`${place}/notes.md`)).toBe("notes\n");
    if (permissions === "full") {
      expect(skill).toBe(FILES["weigh/SKILL.md"]);
      expect(await read(`${place}/.claude/settings.json`)).toBe("{}");
    } else {
      expect(skill).toMatch(/^---\nname: "weigh-parcels"\ndescription: "How to weigh weigh-parcels"\n---\n/);
      expect(await read(`${place}/deep/SKILL.md`)).toBe("\nDeeper.\n");
      await expect(read(`${place}/.claude/settings.json`)).rejects.toThrow();
    }
    expect(await read("modes.txt")).toMatch(/^(444 .*\n)+$/);
  },
);

// Answers like `codex app-server`, and keeps what it finds in the directory of its skills.
const APP_SERVER = `#!/bin/sh
[ "$1" = --version ] && { echo 1.0; exit 0; }
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/^{"id":\\([0-9]*\\).*/\\1/')
  case $line in
    *'"initialize"'*) echo '{"id":'$id',"result":{}}' ;;
    *extraRoots*)
      ls "$(printf '%s' "$line" | sed 's/.*\\["\\(.*\\)"\\].*/\\1/')" > roots.txt 2>&1
      echo '{"id":'$id',"result":{}}' ;;
    *thread/start*) echo '{"id":'$id',"result":{"thread":{"id":"t1"}}}' ;;
    *turn/start*)
      echo '{"id":'$id',"result":{"turn":{"id":"u1"}}}'
      echo '{"method":"item/completed","params":{"threadId":"t1","item":{"type":"agentMessage","id":"i","text":"done"}}}'
      echo '{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}' ;;
  esac
done
`;

it("a Codex that stays open finds the skills in the directory of its process (contract 28)", async () => {
  await using folder = await createTempDir();
  const command = join(folder.path, "codex");
  await Deno.writeTextFile(command, APP_SERVER, { mode: 0o755 });
  const env = { CODEX_API_KEY: "key-0123456789" };
  await using world = await openSkillApp({
    files: FILES,
    config: { engines: { default: "codex", codex: { command, env, warm: {} } } },
  });
  const { body: ada } = await world.create([world.weigh]);
  // Only the processes of conversations stay open.
  const { id } = await world.app.call("POST /api/local/sessions", { worker_id: ada.id });
  await world.app.call(`POST /api/local/sessions/${id}/messages`, { content: "Weigh." });
  await world.app.settle(60_000);
  const [run] = await world.app.call("GET /api/executions");
  expect(run, JSON.stringify(run)).toMatchObject({ status: "completed", result: "done" });
  expect(await Deno.readTextFile(join(ada.work_dir, "roots.txt"))).toBe("weigh-parcels\n");
});
