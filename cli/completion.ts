import { readLine, replies } from "./bash_line.ts";
import { candidatesFor } from "./candidates.ts";
import { SCRIPTS } from "./completion_scripts.ts";
import { EXIT } from "./exit.ts";
import type { Io } from "./io.ts";

/** `svc completion bash|zsh|fish`: prints the script that the shell sources. Returns the exit code (contract 6). */
export function completion(args: string[], io: Io): number {
  const [shell = ""] = args;
  if (!Object.hasOwn(SCRIPTS, shell) || args.length !== 1) {
    io.err(`svc: the shell has to be one of ${Object.keys(SCRIPTS).join(", ")}: svc completion bash\n`);
    io.err("Put it into your profile:  source <(svc completion bash)   or: svc completion fish | source\n");
    return EXIT.usage;
  }
  io.out(SCRIPTS[shell as keyof typeof SCRIPTS]);
  return EXIT.done;
}

/**
 * `svc complete words -- <words>` and `svc complete bash <type> <breaks> <line> <columns>`: what the scripts ask at each TAB. Prints one
 * candidate per line, with its description behind a tab for shells that show one. The text of the line is only looked at,
 * never run, by the scripts and here (decision 0010). Prints nothing when anything goes wrong.
 */
export async function complete(args: string[], io: Io): Promise<number> {
  const [form = "", ...rest] = args;
  if (form === "bash") {
    const [type = "", breaks = "", text = "", columns = ""] = rest;
    const line = readLine(text, breaks);
    if (line === null) return EXIT.done;
    const found = await candidatesFor(line.words.slice(1), io);
    const room = LISTING.includes(type) ? Number(columns) || COLUMNS_DEFAULT : 0;
    io.out(replies(found, line, room).map((reply) => `${reply}\n`).join(""));
    return EXIT.done;
  }
  const words = rest[0] === "--" ? rest.slice(1) : rest;
  const found = await candidatesFor(words, io);
  io.out(found.map(({ value, about }) => `${value}\t${oneLine(about)}\n`).join(""));
  return EXIT.done;
}

const COLUMNS_DEFAULT = 80;
// COMP_TYPE when bash lists what there is instead of completing: ?, ! and @.
const LISTING = ["63", "33", "64"];

function oneLine(about: string): string {
  return about.replace(/\s+/g, " ");
}
