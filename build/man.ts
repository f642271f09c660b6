// Generates man pages from the commands: `make man` writes them to dist/man, `make release` adds them to the archives.
import { join } from "node:path";
import { type AnyCommand, type OptionSpec, SHARED_OPTIONS } from "../cli/commands/command.ts";
import { EXITS } from "../cli/terminal/exit.ts";
import { GROUPS, loadGroup } from "../cli/commands/groups.ts";
import { TOP_COMMANDS } from "../cli/commands/top_commands.ts";
import { ROOT } from "./lock.ts";
import { readStamp, type Stamp } from "./stamp.ts";

/** Returns `svc.1` and `svc-ctl.1`, byte for byte the same for the same source (reliability SUP-4). */
export async function buildManPages(
  stamp: Pick<Stamp, "version" | "commitTime">,
): Promise<Record<string, string>> {
  const date = new Date(stamp.commitTime || 0).toISOString().slice(0, 10);
  const head = (title: string) => `.TH ${title} 1 "${date}" "svc ${stamp.version}" "User Commands"\n`;
  return { "svc.1": head("SVC") + formatProgram(), "svc-ctl.1": head("SVC-CTL") + await formatControl() };
}

function formatProgram(): string {
  const commands = Object.values(TOP_COMMANDS).map((
    { about, usage, subcommands: words = {}, options = [], more },
  ) =>
    [
      `.SS svc ${escapeRoff(usage)}`,
      `${escapeRoff(about)}.`,
      ...Object.entries(words).filter(([, one]) => one !== "").map(([word, one]) => formatItem(word, one)),
      ...options.map(formatFlag),
      ...(more === undefined ? [] : [".PP", escapeRoff(more)]),
    ].join("\n")
  );
  return [
    formatSection("NAME", "svc \\- run AI agents as workers: messages in, tasks out, replies back"),
    formatSection("SYNOPSIS", `.B svc\n${escapeRoff("<command> [arguments] [flags]")}`),
    formatSection("COMMANDS", commands.join("\n")),
    formatSection(
      "FILES",
      formatItem("config.yaml", "configuration in the current directory, or the file of -c") + "\n" +
        formatItem(
          "data/",
          "data directory, or the directory of data_dir",
        ),
    ),
    formatSection("SEE ALSO", ".BR svc-ctl (1)"),
  ].join("");
}

async function formatControl(): Promise<string> {
  const groups: string[] = [];
  for (const [name, { about }] of Object.entries(GROUPS)) {
    const group = await loadGroup(name);
    const commands = Array.isArray(group)
      ? group.map((spec) => formatCommand(`${name} ${spec.name}`, spec))
      : [formatCommand(name, group)];
    groups.push(formatSection(name.toUpperCase(), `${escapeRoff(about)}.\n${commands.join("\n")}`));
  }
  const codes = Object.values(EXITS).map(({ code, meaning }) => formatItem(String(code), meaning));
  return [
    formatSection("NAME", "svc\\-ctl \\- control a running svc"),
    formatSection("SYNOPSIS", `.B svc ctl\n${escapeRoff("<group> <command> [arguments] [flags]")}`),
    formatSection(
      "DESCRIPTION",
      escapeRoff(
        "Prints a table on a terminal, tab-separated lines with full IDs in a pipe, the server's JSON with --json, and only IDs " +
          "with -q. Results go to stdout, everything else to stderr. A time is Unix ms, ISO 8601 or relative, e.g. -1h or +10m.",
      ),
    ),
    formatSection("FLAGS OF EVERY COMMAND", Object.values(SHARED_OPTIONS).map(formatFlag).join("\n")),
    ...groups,
    formatSection("EXIT STATUS", codes.join("\n")),
    formatSection(
      "ENVIRONMENT",
      [
        formatItem("SVC_URL", "address of the service"),
        formatItem("SVC_TOKEN", "token; without one, ctl signs its own with the key in the data directory"),
        formatItem("SVC_CA_FILE", "PEM file of extra certificates to trust"),
        formatItem("NO_COLOR", "disables colors"),
      ].join("\n"),
    ),
    formatSection("SEE ALSO", ".BR svc (1)"),
  ].join("");
}

function formatCommand(title: string, spec: AnyCommand): string {
  const args = (spec.args ?? []).map((arg) => arg.startsWith("[") ? ` ${arg}` : ` <${arg}>`).join("");
  const examples = spec.examples.map((example) => escapeRoff(`svc ctl ${example}`)).join("\n");
  return [
    `.SS svc ctl ${escapeRoff(`${title}${args} [flags]`)}`,
    `${escapeRoff(spec.about)}.`,
    ...Object.values(spec.options).map(formatFlag),
    ".PP\n.EX",
    examples,
    ".EE",
  ].join("\n");
}

function formatFlag({ flags, about, choices, required, unless, default: fallback }: OptionSpec): string {
  const more = [
    choices === undefined ? "" : `: ${choices.join(", ")}`,
    required ? ` (required${unless === undefined ? "" : ` without ${unless}`})` : "",
    fallback === undefined ? "" : ` (default ${fallback})`,
  ].join("");
  return formatItem(flags, about + more);
}

function formatItem(term: string, words: string): string {
  return `.TP\n.B ${escapeRoff(term)}\n${escapeRoff(words)}`;
}

function formatSection(title: string, body: string): string {
  return `.SH ${title}\n${body}\n`;
}

/** Escapes text for roff, which reads a line with a leading dot or quote as a request. */
function escapeRoff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^([.'])/gm, "\\&$1");
}

/** Writes the pages to dist/man. */
export async function writeManPages(stamp: Stamp): Promise<void> {
  const folder = join(ROOT, "dist", "man");
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(await buildManPages(stamp))) {
    await Deno.writeTextFile(join(folder, name), text);
  }
}

if (import.meta.main) await writeManPages(await readStamp());
