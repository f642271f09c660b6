import { closeSync, openSync, readSync } from "node:fs";
import { findProgram } from "./process.ts";

/** The files that a program needs outside the system's directories to be started. */
export interface ProgramFiles {
  /** Real paths of files and directories. */
  read: string[];
  /** Symbolic links by which the program is called: path and target. */
  links: [path: string, target: string][];
}

const SCRIPT_LINE_MAX_BYTES = 512;
const INTERPRETERS_MAX = 4;

/** Finds the files of a program: its target, the packages around it, and the interpreter of a script. Throws SpawnError. */
export function findProgramFiles(program: string, path: string): ProgramFiles {
  const files: ProgramFiles = { read: [], links: [] };
  let next: string | null = program;
  for (let depth = 0; next !== null && depth < INTERPRETERS_MAX; depth++) {
    const real: string = Deno.realPathSync(next);
    files.read.push(findPackages(real));
    if (real !== next) files.links.push([next, real]);
    next = findInterpreter(real, path);
  }
  return files;
}

// A program of a package loads the packages next to it.
function findPackages(real: string): string {
  const at = real.indexOf("/node_modules/");
  return at === -1 ? real : real.slice(0, at + "/node_modules".length);
}

/** Returns the program that the first line of a script names, or null. */
function findInterpreter(file: string, path: string): string | null {
  const words = /^#!\s*(\S+)[ \t]*(?:-S[ \t]+)?(\S*)/.exec(readFirstBytes(file));
  if (words === null) return null;
  const [, program = "", argument = ""] = words;
  if (!/\/env$/.test(program)) return findProgram(program, path);
  return argument === "" || argument.includes("=") ? null : findProgram(argument, path);
}

function readFirstBytes(path: string): string {
  const file = openSync(path, "r");
  try {
    const bytes = new Uint8Array(SCRIPT_LINE_MAX_BYTES);
    return new TextDecoder("latin1").decode(bytes.subarray(0, readSync(file, bytes)));
  } finally {
    closeSync(file);
  }
}
