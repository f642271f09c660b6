// The worktree of a run on a runner: its branch comes from the service, and its commits go back there (contract 33.11).
import { dirname, join } from "node:path";
import { createLogger } from "../../base/log.ts";
import { fetchBundle, writeCommitBundle } from "../../files/git/bundle.ts";
import { GitError } from "../../files/git/git_error.ts";
import { createWorktree, Mirrors } from "../../files/git/mirror.ts";
import { SetupError } from "../variables.ts";
import { takeOverRun } from "./take_over.ts";
import type { Workspace } from "./workspaces.ts";

const log = createLogger("runner");

interface SentWorkspace {
  executionId: string;
  instruction: string;
  workDir: string;
  /** The repository that the worktree borrows from. This creates it. */
  mirror: string;
  branch: string;
  author: { name: string; email: string };
  /** The user of the box that works there, or null. */
  owner: { uid: number; gid: number } | null;
  umask: number;
  /** Downloads the bundle of the branch. */
  download: (path: string) => Promise<void>;
  /** Uploads the bundle with the commits. */
  upload: (path: string) => Promise<void>;
}

/** Downloads the branch of a run and checks it out in its work directory. Throws SetupError with the reason of git. */
export async function openSentWorkspace(run: SentWorkspace): Promise<Workspace> {
  const { executionId, instruction, workDir, mirror, branch, author, owner, umask } = run;
  const bundle = join(dirname(mirror), "bundle");
  try {
    const { commit, base, baseCommit } = await new Mirrors().use(mirror, async () => {
      await run.download(bundle);
      return await fetchBundle(mirror, bundle, branch);
    });
    await Deno.remove(bundle);
    await createWorktree(mirror, workDir, { branch, commit, base, baseCommit, author, owner, umask });
    const known = { mirror, branch, known: commit, author, instruction, executionId };
    return {
      objects: join(mirror, "objects"),
      async takeOver(context) {
        try {
          const { head } = await takeOverRun(context, known);
          if (head !== commit) {
            await writeCommitBundle(mirror, bundle, { branch, before: commit });
            await run.upload(bundle);
          }
        } catch (error) {
          log.warning("Cannot send the commits of run {id}: {error}", { id: executionId, error });
          const words = error instanceof Error ? error.message : String(error);
          context.note(`[its changes are lost, because they are not at the service: ${words}]`);
        }
        return undefined;
      },
    };
  } catch (error) {
    if (error instanceof GitError) throw new SetupError(`Cannot prepare the worktree: ${error.message}.`);
    throw error;
  }
}
