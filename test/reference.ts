// Writes docs/reference/cli.md from the commands themselves: `make docs`. A test fails when the file is not what this makes.
import { GROUPS, loadGroup } from "../cli/groups.ts";
import { type AnyCommand, type OptionSpec, SHARED_OPTIONS } from "../cli/command.ts";
import { EXIT, EXIT_MEANINGS } from "../cli/exit.ts";
import { OWN_CODES } from "../cli/problem_json.ts";

const HEAD = `# svc ctl: every command

\`make docs\` writes this page from the commands; don't edit it. \`svc ctl help <group> <command>\` prints the same.

\`\`\`
svc ctl <group> <command> [arguments] [flags]
\`\`\`

On a terminal, the output is a table. In a pipe, it is tab-separated lines without a header: full ids, no cut texts, and tabs and
line breaks as \`\\t\` and \`\\n\`. \`--json\` prints the server's JSON and \`-q\` only ids. Answers go to stdout, everything else to stderr.

How it finds the server and logs in: [api.md](api.md#from-the-command-line).
`;

/** The whole reference as Markdown. */
export async function reference(): Promise<string> {
  const parts = [HEAD, flagTable("Flags of every command", SHARED_OPTIONS), exitCodes(), ownCodes()];
  for (const [name, { about }] of Object.entries(GROUPS)) {
    const group = await loadGroup(name);
    parts.push(`## ${name}\n\n${about}.\n`);
    if (Array.isArray(group)) parts.push(...group.map((spec) => section(`${name} ${spec.name}`, spec)));
    else parts.push(section(name, group));
  }
  return parts.join("\n");
}

function exitCodes(): string {
  const rows = Object.entries(EXIT).map(([name, code]) =>
    `| ${code} | ${EXIT_MEANINGS[name as keyof typeof EXIT]} |`
  );
  return `## Exit codes\n\n| code | meaning |\n|---|---|\n${rows.join("\n")}\n`;
}

function ownCodes(): string {
  const rows = Object.entries(OWN_CODES).map(([code, when]) => `| \`${code}\` | ${when} |`);
  return "## Errors with --json\n\nAn error is one JSON object on stderr: the server's problem document as it came, or one that `svc ctl` makes itself, with `type`,\n" +
    "`title`, `detail` and `code`, but without `status` and `request_id`, since no server answered. The codes of its own:\n\n" +
    `| code | meaning |\n|---|---|\n${rows.join("\n")}\n`;
}

function section(title: string, spec: AnyCommand): string {
  const args = (spec.args ?? []).map((arg) => ` <${arg}>`).join("");
  const usage = `\`\`\`\nsvc ctl ${title}${args} [flags]\n\`\`\`\n`;
  const examples = `\`\`\`sh\n${spec.examples.map((example) => `svc ctl ${example}`).join("\n")}\n\`\`\`\n`;
  const flags = Object.keys(spec.options).length === 0 ? "" : `\n${flagTable("", spec.options)}`;
  return `### ${title}\n\n${spec.about}.\n\n${usage}${flags}\n${examples}`;
}

function flagTable(title: string, options: Record<string, OptionSpec>): string {
  const rows = Object.values(options).map((option) => `| \`${option.flags}\` | ${meaning(option)} |`);
  const head = title === "" ? "" : `## ${title}\n\n`;
  return `${head}| flag | meaning |\n|---|---|\n${
    rows.join("\n").replaceAll("<id|name>", "<id\\|name>").replaceAll("<ids|names>", "<ids\\|names>")
  }\n`;
}

function meaning({ about, required, unless, default: fallback, choices, type }: OptionSpec): string {
  return [
    about,
    choices === undefined ? "" : `: ${choices.map((choice) => `\`${choice}\``).join(", ")}`,
    required ? ` **(needed${unless === undefined ? "" : ` without \`${unless}\``})**` : "",
    fallback === undefined ? "" : ` (default \`${fallback}\`)`,
    type === "list" ? " (repeatable)" : "",
  ].join("");
}

if (import.meta.main) {
  await Deno.writeTextFile(new URL("../docs/reference/cli.md", import.meta.url), await reference());
}
