import { extractConfigFlag } from "../src/config/file.ts";
import { openProcessIo } from "./terminal/io.ts";
import { confirm } from "./terminal/prompt.ts";

const FLAGS = ["--yes", "--force", "--new-key", "--paused"];
const USAGE = "Usage: svc restore <file> [-c config.yaml] [--yes] [--new-key] [--paused]";

interface RestoreArguments {
  file: string;
  config: string | undefined;
  newKey: boolean;
  paused: boolean;
  confirm: (question: string) => Promise<boolean>;
}

/** Parses the arguments of `svc restore`. Returns the text of a usage error as a string. */
export function parseRestoreArguments(args: string[]): RestoreArguments | string {
  let parsed: ReturnType<typeof extractConfigFlag>;
  try {
    parsed = extractConfigFlag(args);
  } catch (error) {
    return `svc: ${error instanceof Error ? error.message : error}`;
  }
  const { config, rest } = parsed;
  const unknown = rest.find((word) => word.startsWith("-") && !FLAGS.includes(word));
  if (unknown !== undefined) return `svc: unknown flag ${unknown}. ${USAGE}`;
  const [file = "", ...more] = rest.filter((word) => !word.startsWith("-"));
  if (file === "" || more.length > 0) return `svc: specify one backup file. ${USAGE}`;
  const isConfirmed = rest.includes("--yes") || rest.includes("--force");
  return {
    file,
    config,
    newKey: rest.includes("--new-key"),
    paused: rest.includes("--paused"),
    confirm: async (question) =>
      isConfirmed || await confirm(openProcessIo(new AbortController().signal), question, "--yes"),
  };
}
