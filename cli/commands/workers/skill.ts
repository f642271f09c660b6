import { formatChangeCounts } from "../../../src/domain/work/change_counts.ts";
import type { Api } from "../../../src/http/app.ts";
import { toColumns } from "../../terminal/column.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { confirm } from "../../terminal/prompt.ts";
import { escapeLine } from "../../terminal/visible.ts";
import { type AnyCommand, type BaseContext, command, option } from "../command.ts";
import { confirmLoss, YES } from "../resource.ts";

type Skill = Api["GET /api/workers/:id"]["response"]["skills"][number];
type Checked = Api["POST /api/workers/:id/skills/check"]["response"];

const REFS = { worker: "worker" } as const;
const REF = option.text("--ref <ref>", "branch, tag or commit (default HEAD)");

export const group: AnyCommand[] = [
  command({
    name: "list",
    about: "List the skills of a worker",
    args: ["worker"],
    refs: REFS,
    examples: ["skill list Ada"],
    async run({ client, out, args: [id = ""] }) {
      const skills = await listSkills({ client }, id);
      const columns = toColumns("name ref url path description");
      await out.list(JSON.stringify(skills), skills, columns, ({ name }) => `${name}`);
    },
  }),
  command({
    name: "add",
    about: "Give a worker a skill of a git repository, at a commit",
    args: ["worker", "url"],
    refs: REFS,
    options: { ref: REF, path: option.text("--path <path>", "folder of its SKILL.md (default the root)") },
    examples: [
      "skill add Ada https://forge.example.org/team/skills.git --path weigh-parcels",
      "skill add Ada https://forge.example.org/team/skills.git --path weigh-parcels --ref v2",
    ],
    async run(context) {
      const { client, out, args: [id = "", url = ""], typed: [worker], options: { ref, path } } = context;
      const { skill, before } = await check(context, id, { url, ...toGiven({ ref, path }) });
      if (before !== null) {
        throw new Exit(
          EXIT.conflict,
          `Cannot add: ${worker} has the skill ${skill.name} already. Run svc ctl skill update ${worker} ${skill.name}, or remove it first.`,
        );
      }
      context.note(`${skill.name} is at ${skill.ref}`);
      const skills = [...await listSkills(context, id), skill];
      const { json, value } = await client.call("PUT /api/workers/:id", { params: { id }, body: { skills } });
      out.object(json, value, id);
    },
  }),
  command({
    name: "update",
    about: "Show the changes of a worker's skills, and take them after a confirmation",
    args: ["worker", "[name]"],
    refs: REFS,
    options: { ref: REF, yes: YES },
    examples: ["skill update Ada", "skill update Ada weigh-parcels --ref v3"],
    async run(context) {
      const { client, out, args: [id = "", name], options: { ref, yes } } = context;
      const skills = await listSkills(context, id);
      const chosen = name === undefined ? skills : [requireSkill(context, skills, name)];
      for (const { name, url, path } of chosen) {
        await update(context, id, { ...toGiven({ ref }), name, url, path }, yes);
      }
      if (isForPeople(out)) return;
      const { json, value } = await client.call("GET /api/workers/:id", { params: { id } });
      out.object(json, value, id);
    },
  }),
  command({
    name: "remove",
    about: "Remove a skill from a worker",
    args: ["worker", "name"],
    refs: REFS,
    options: { yes: YES },
    examples: ["skill remove Ada weigh-parcels"],
    async run(context) {
      const { client, out, args: [id = "", name = ""], typed: [worker], options: { yes } } = context;
      const skills = await listSkills(context, id);
      requireSkill(context, skills, name);
      if (!yes) await confirmLoss(context, `Remove the skill ${name} from ${worker}?`);
      const left = skills.filter((one) => one.name !== name);
      const { json, value } = await client.call("PUT /api/workers/:id", {
        params: { id },
        body: { skills: left },
      });
      out.object(json, value, id);
    },
  }),
];

async function listSkills({ client }: Pick<BaseContext, "client">, id: string): Promise<Skill[]> {
  return (await client.call("GET /api/workers/:id", { params: { id } })).value.skills;
}

function requireSkill({ typed: [worker] }: Pick<BaseContext, "typed">, skills: Skill[], name: string): Skill {
  const found = skills.find((one) => one.name === name);
  if (found !== undefined) return found;
  const known = skills.map((one) => one.name).join(", ") || "none";
  throw new Exit(
    EXIT.notFound,
    `Cannot find: ${worker} has no skill ${name}. Its skills: ${known}.`,
  );
}

function toGiven(fields: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => !!entry[1]));
}

type CheckBody = Api["POST /api/workers/:id/skills/check"]["body"];

async function check({ client }: Pick<BaseContext, "client">, id: string, body: CheckBody): Promise<Checked> {
  return (await client.call("POST /api/workers/:id/skills/check", { params: { id }, body })).value;
}

// Programs that read JSON or ids get the worker on stdout, and the changes are on stderr.
function isForPeople({ format }: BaseContext["out"]): boolean {
  return format !== "json" && format !== "ids";
}

async function update(context: BaseContext, id: string, body: CheckBody, yes?: boolean): Promise<void> {
  const { client, out, io } = context;
  const { skill, before, diff, truncated, ...counts } = await check(context, id, body);
  const { name = "" } = body;
  if (before?.ref === skill.ref) return context.note(`${name} is up to date (${skill.ref})`);
  const isText = isForPeople(out);
  const print = (text: string) => isText ? out.raw(text) : io.err(text);
  const isTerminal = isText ? io.outIsTerminal : io.errIsTerminal;
  print(isTerminal ? diff.split("\n").map((line) => escapeLine(line, false)).join("\n") : diff);
  const cut = truncated ? ". The diff is cut: it has more than 2 MiB" : "";
  context.note(`${name}: ${before?.ref} to ${skill.ref}, ${formatChangeCounts(counts)}${cut}`);
  if (!yes && !await confirm(io, `Update the skill ${name} to ${skill.ref}?`, "--yes")) {
    throw new Exit(EXIT.declined, "Canceled. Changed nothing.");
  }
  // Another client may have changed the list meanwhile.
  const skills = (await listSkills({ client }, id)).map((one) => one.name === name ? skill : one);
  await client.call("PUT /api/workers/:id", { params: { id }, body: { skills } });
}
