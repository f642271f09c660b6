import { resolve } from "node:path";
import { usageError } from "../terminal/exit.ts";

/** `--token-file` of commands that create a token. */
export const TOKEN_FILE = {
  flags: "--token-file <path>",
  about: "write the token to this new file, readable only by you, instead of showing it",
  type: "text",
} as const;

interface CreateResult<T> {
  json: string;
  value: T;
}

// The disk space to reserve for a token.
const TOKEN_MAX_BYTES = 4_096;
const SPACE = 0x20;

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  await file.seek(0, Deno.SeekMode.Start);
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  await file.sync();
}

/**
 * Calls `make`, which creates a token. With a path, writes the token to that new file instead of the result. The disk space
 * is reserved before the token exists, so that no token is lost. Throws a usage error if the file cannot be
 * created.
 */
export async function saveToken<T extends { token: string }>(
  { cwd }: { cwd: string },
  tokenFile: string | undefined,
  make: () => Promise<CreateResult<T>>,
): Promise<CreateResult<Omit<T, "token">>> {
  if (tokenFile === undefined) return await make();
  const path = resolve(cwd, tokenFile);
  using file = await Deno.open(path, { read: true, write: true, createNew: true, mode: 0o600 }).catch(
    (error) => {
      throw usageError(
        error instanceof Deno.errors.AlreadyExists
          ? `--token-file: ${path} already exists. Specify a new file.`
          : `--token-file: cannot write ${path}. Specify a new file in a directory that you can write to.`,
      );
    },
  );
  try {
    await writeAll(file, new Uint8Array(TOKEN_MAX_BYTES).fill(SPACE));
  } catch {
    await Deno.remove(path);
    throw usageError(`--token-file: cannot write ${path}. The disk may be full.`);
  }
  let made: CreateResult<T>;
  try {
    made = await make();
  } catch (error) {
    await Deno.remove(path);
    throw error;
  }
  const { token, ...shown } = made.value;
  const bytes = new TextEncoder().encode(token + "\n");
  await writeAll(file, bytes);
  await file.truncate(bytes.length);
  return { json: JSON.stringify(shown), value: shown };
}
