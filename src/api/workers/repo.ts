import { invalid } from "../../domain/call/error.ts";
import { findRepoSecret, hideRepoSecret, type Repo } from "../../domain/workers/repo.ts";
import { resolveLinks, touchesData } from "../../base/paths.ts";
import { findSecret, listGrantedSecrets } from "../../store/account/secret.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkMaySet } from "../work/task_commands.ts";
import { requireScope } from "./worker_env.ts";

interface RepoChange {
  /** Null for a new worker. */
  workerId: string | null;
  before: Repo | null;
  repo: Repo | null;
  /** The requested work directory, "" for none. */
  workDir: string;
  /** Prefix of field names in errors. */
  path?: string;
}

/**
 * Checks the repository of a worker after a change. Throws `forbidden` for a caller who cannot set one, as all runs, and `invalid_request`
 * for a change that would leave branches behind, and for a secret that the worker may not use.
 */
export async function checkRepo(
  { db, paths }: Deps<"db" | "paths">,
  call: Call,
  { workerId, before, repo, workDir, path = "" }: RepoChange,
): Promise<void> {
  const isChanged = JSON.stringify(before) !== JSON.stringify(repo);
  if (isChanged) checkMaySet(call, "repo");
  if (repo !== null && workDir !== "") {
    throw invalid(
      `${path}work_dir`,
      "cannot be combined with repo, whose worktrees are the work directories",
    );
  }
  if (!isChanged) return;
  if (workerId !== null && (before?.url !== repo?.url || before?.path !== repo?.path)) {
    throw invalid(
      `${path}repo`,
      "cannot be another repository, because its branches belong to this one. Create another worker.",
    );
  }
  if (repo?.path !== undefined && touchesData(resolveLinks(repo.path), paths)) {
    throw invalid(`${path}repo.path`, "is in the service's data directory");
  }
  const secret = findRepoSecret(repo);
  if (secret === null || secret === findRepoSecret(before)) return;
  const field = `${path}repo.credentials`;
  requireScope(call, "write:secrets", field);
  if (await findSecret(db, secret) === null) {
    throw invalid(field, `no secret is called ${secret}. Set it with svc ctl secret set ${secret}`);
  }
  if (workerId === null || (await listGrantedSecrets(db, workerId, [secret])).has(secret)) return;
  throw invalid(
    field,
    `the worker may not use the secret ${secret}. Run svc ctl secret grant ${secret} --worker ${workerId}`,
  );
}

/** Returns the requested repository. A client may send back what GET returned, with a hidden secret. */
export function resolveRepo(before: Repo | null, wanted: Repo | null): Repo | null {
  const isShown = before !== null && JSON.stringify(hideRepoSecret(before)) === JSON.stringify(wanted);
  return isShown ? before : wanted;
}
