import { extractConfigFlag } from "../src/config/file.ts";
import { openProcessIo } from "./terminal/io.ts";
import { confirm } from "./terminal/prompt.ts";

const USAGE = "svc restore <file> [-c config.yaml] [--yes] [--new-key] [--paused]";

/** The arguments of `svc restore`. */
interface RestoreArguments {
  file: string;
  config: string | undefined;
  yes: boolean;
  newKey: boolean;
  paused: boolean;
}

/** Parses the arguments of `svc restore`. Returns the text of a usage error as a string. */
export function parseRestoreArguments(args: string[]): RestoreArguments | string {
  const files: string[] = [];
  const found: RestoreArguments = { file: "", config: undefined, yes: false, newKey: false, paused: false };
  try {
    const { config, rest } = extractConfigFlag(args);
    found.config = config;
    for (const word of rest) {
      if (word === "--yes" || word === "--force") found.yes = true;
      else if (word === "--new-key") found.newKey = true;
      else if (word === "--paused") found.paused = true;
      else if (word.startsWith("-")) return `svc: unknown flag ${word}. Usage: ${USAGE}`;
      else files.push(word);
    }
  } catch (error) {
    return `svc: ${error instanceof Error ? error.message : error}`;
  }
  const [file = "", ...more] = files;
  if (file === "" || more.length > 0) return `svc: specify one backup file. Usage: ${USAGE}`;
  return { ...found, file };
}

/** Returns the confirmation before a restore. Without a terminal it reads stdin (contract 6). */
export function createConfirmation(yes: boolean): (question: string) => Promise<boolean> {
  return async (question) =>
    yes || await confirm(openProcessIo(new AbortController().signal), question, "--yes");
}
