import { resolve } from "node:path";
import { usageError } from "../terminal/exit.ts";

/** What was made, as the service answered it. */
interface CreateResult<T> {
  json: string;
  value: T;
}

// More than any token has: a disk that becomes full meanwhile has room for it.
const TOKEN_ROOM_BYTES = 4_096;
const SPACE = 0x20;

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  await file.seek(0, Deno.SeekMode.Start);
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  await file.sync();
}

/**
 * Lets `make` make something with a token. With a path the token goes into this new file, which only its owner may read, and is not in
 * the answer. The file and room in it are there before the token is: one that could not be written would be lost. Throws a usage error when it cannot be made.
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
          ? `--token-file: ${path} is there already; name a new file`
          : `--token-file: cannot write ${path}; name a new file in a directory that is there and yours`,
      );
    },
  );
  try {
    await writeAll(file, new Uint8Array(TOKEN_ROOM_BYTES).fill(SPACE));
  } catch {
    await Deno.remove(path);
    throw usageError(`--token-file: cannot write ${path}; is the disk full?`);
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
