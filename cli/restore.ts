import { takeConfig } from "../src/config/file.ts";
import { EXIT, Exit } from "./terminal/exit.ts";
import { openProcessIo } from "./terminal/io.ts";
import { confirm } from "./terminal/prompt.ts";

const USAGE = "svc restore <file> [-c config.yaml] [--yes] [--new-key] [--paused]";

/** What `svc restore` was asked for. */
interface RestoreArguments {
  file: string;
  config: string | undefined;
  yes: boolean;
  newKey: boolean;
  paused: boolean;
}

/** The arguments of `svc restore`, or the words of a usage error. */
export function parseRestoreArguments(args: string[]): RestoreArguments | string {
  const files: string[] = [];
  const found: RestoreArguments = { file: "", config: undefined, yes: false, newKey: false, paused: false };
  try {
    const { config, rest } = takeConfig(args);
    found.config = config;
    for (const word of rest) {
      if (word === "--yes" || word === "--force") found.yes = true;
      else if (word === "--new-key") found.newKey = true;
      else if (word === "--paused") found.paused = true;
      else if (word.startsWith("-")) return `svc: restore has no flag ${word}; it is: ${USAGE}`;
      else files.push(word);
    }
  } catch (error) {
    return `svc: ${error instanceof Error ? error.message : error}`;
  }
  const [file = "", ...more] = files;
  if (file === "" || more.length > 0) return `svc: one file is needed: ${USAGE}`;
  return { ...found, file };
}

/** The question before anything is changed; without a terminal its answer is read from stdin (contract 6). */
export function createConfirmation(yes: boolean): (question: string) => Promise<boolean> {
  return async (question) => {
    if (yes) return true;
    try {
      return await confirm(openProcessIo(new AbortController().signal), question);
    } catch (error) {
      if (!(error instanceof Exit) || error.code !== EXIT.usage) throw error;
      throw new Exit(
        EXIT.usage,
        "there is no terminal to ask on and no answer on stdin; use --yes to go on without asking",
      );
    }
  };
}
