// Generates the reference of `svc ctl` from the commands: `make docs`. A test compares the file with it.
import { GROUPS, loadGroup } from "../cli/commands/groups.ts";
import { type AnyCommand, type OptionSpec, SHARED_OPTIONS } from "../cli/commands/command.ts";
import { EXITS } from "../cli/terminal/exit.ts";
import { OWN_CODES } from "../cli/client/error_json.ts";

export const REFERENCE = "docs/reference/cli.md";

const HEAD = `# svc ctl: every command

\`make docs\` generates this page from the commands. \`svc ctl help <group> <command>\` prints the same.

\`\`\`
svc ctl <group> <command> [arguments] [flags]
\`\`\`

On a terminal, a command prints a table. In a pipe, it prints tab-separated lines without a header, with full IDs, nothing cut,
and tabs and line breaks as \`\\t\` and \`\\n\`. \`--json\` prints the server's JSON, \`-q\` only IDs. Results go to stdout, everything else to stderr.

How \`svc ctl\` finds the server and logs in: [api.md](api.md#from-the-command-line).
`;

export async function buildReference(): Promise<string> {
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
  const rows = Object.values(EXITS).map(({ code, meaning }) => `| ${code} | ${meaning} |`);
  return `## Exit codes\n\n| code | meaning |\n|---|---|\n${rows.join("\n")}\n`;
}

function ownCodes(): string {
  const rows = Object.entries(OWN_CODES).map(([code, when]) => `| \`${code}\` | ${when} |`);
  return "## Errors with --json\n\nAn error is one JSON object on stderr: the problem document of the server, or one from `svc ctl` itself, with `type`, `title`,\n" +
    "`detail` and `code`, but without `status` and `request_id`. The codes of `svc ctl`:\n\n" +
    `| code | meaning |\n|---|---|\n${rows.join("\n")}\n`;
}

function section(title: string, spec: AnyCommand): string {
  const args = (spec.args ?? []).map((arg) => arg.startsWith("[") ? ` ${arg}` : ` <${arg}>`).join("");
  const flags = Object.keys(spec.options).length === 0 ? "" : `\n${flagTable("", spec.options)}`;
  const examples = `\`\`\`sh\n${spec.examples.map((example) => `svc ctl ${example}`).join("\n")}\n\`\`\`\n`;
  return `### ${title}\n\n\`svc ctl ${title}${args} [flags]\`: ${spec.about}.\n${flags}\n${examples}`;
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
    required ? ` **(required${unless === undefined ? "" : ` without \`${unless}\``})**` : "",
    fallback === undefined ? "" : ` (default \`${fallback}\`)`,
    type === "list" ? " (repeatable)" : "",
  ].join("");
}

if (import.meta.main) {
  await Deno.writeTextFile(new URL(`../${REFERENCE}`, import.meta.url), await buildReference());
}
