import { formatReplies, parseBashLine } from "./bash_line.ts";
import { findCandidates } from "./candidates.ts";
import { SCRIPTS } from "./shell_scripts.ts";
import { EXIT } from "../terminal/exit.ts";
import type { Io } from "../terminal/io.ts";

/** `svc completion bash|zsh|fish`: prints the completion script of a shell. Returns the exit code (contract 6). */
export function printCompletionScript(args: string[], io: Io): number {
  const [shell = ""] = args;
  if (!Object.hasOwn(SCRIPTS, shell) || args.length !== 1) {
    io.err(`svc: specify one of ${Object.keys(SCRIPTS).join(", ")}, e.g. svc completion bash\n`);
    io.err(
      "Add this to your shell profile: source <(svc completion bash), or svc completion fish | source\n",
    );
    return EXIT.usage;
  }
  io.out(SCRIPTS[shell as keyof typeof SCRIPTS]);
  return EXIT.done;
}

/**
 * `svc complete words -- <words>` and `svc complete bash <type> <breaks> <line> <columns>`: the scripts run it at
 * each TAB. Prints one candidate per line, with a tab and its description. Neither the scripts nor this code evaluate
 * the line (decision 0010). Prints nothing after an error.
 */
export async function printCandidates(args: string[], io: Io): Promise<number> {
  const [form = "", ...rest] = args;
  if (form === "bash") {
    const [type = "", breaks = "", text = "", columns = ""] = rest;
    const line = parseBashLine(text, breaks);
    if (line === null) return EXIT.done;
    const found = await findCandidates(line.words.slice(1), io);
    const room = LISTING_TYPES.includes(type) ? Number(columns) || COLUMNS_DEFAULT : 0;
    io.out(formatReplies(found, line, room).map((reply) => `${reply}\n`).join(""));
    return EXIT.done;
  }
  const words = rest[0] === "--" ? rest.slice(1) : rest;
  const found = await findCandidates(words, io);
  io.out(found.map(({ value, about }) => `${value}\t${joinLines(about)}\n`).join(""));
  return EXIT.done;
}

const COLUMNS_DEFAULT = 80;
// Values of COMP_TYPE with which bash lists candidates: ?, ! and @.
const LISTING_TYPES = ["63", "33", "64"];

function joinLines(about: string): string {
  return about.replace(/\s+/g, " ");
}
