import { resolve } from "node:path";
import { formatReason, usageError } from "./exit.ts";
import type { Io } from "./io.ts";

/** The server's limit for a text (contract 1). */
export const TEXT_MAX_BYTES = 256 * 1024;

/** Reads a text argument, from stdin for `-`. Throws a usage error for an empty text if it has a name. */
export async function readTextArgument(
  io: Io,
  given: string,
  name: string | null,
  maxBytes = TEXT_MAX_BYTES,
): Promise<string> {
  const isFlag = name?.startsWith("--") ?? false;
  const text = given === "-"
    ? (await readText(io, maxBytes, isFlag ? `${name} -` : "-")).replace(/[\r\n]+$/, "")
    : given;
  if (name !== null && text.trim() === "") {
    throw usageError(`${isFlag ? name : `the ${name}`} must not be empty`);
  }
  return text;
}

/** Reads stdin as text, for the flag or argument `name`. Throws a usage error for too many bytes or invalid UTF-8. */
export async function readText(io: Io, maxBytes: number, name: string, nextStep = ""): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of openStdin(io)) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) throw usageError(`${name}: the text is longer than ${maxBytes} bytes${nextStep}`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(
      await new Blob(chunks as BlobPart[]).arrayBuffer(),
    );
  } catch {
    throw usageError(`${name}: the text is not valid UTF-8${nextStep}`);
  }
}

/** Reads a file as text, or stdin for `-`. Throws a usage error for an unreadable or too large file (contract 8.7). */
export async function readInputFile(
  io: Io,
  file: string,
  { flag, maxBytes }: { flag: string; maxBytes: number },
): Promise<string> {
  if (file === "-") return await readText(io, maxBytes, flag);
  const path = resolve(io.cwd, file);
  try {
    const { size } = await Deno.stat(path);
    if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    return await Deno.readTextFile(path);
  } catch (error) {
    throw usageError(`cannot read ${path}: ${formatReason(error)}`);
  }
}

/** Opens stdin so that Ctrl-C ends a read: ctl handles SIGINT, which would otherwise not. */
export function openStdin(io: Io): ReadableStream<Uint8Array> {
  return io.stdin.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal: io.signal });
}
