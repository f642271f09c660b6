/** The branch that a failed check or a review of a forge is about. */
export interface ForgeChange {
  /** Address of the repository that reports it. */
  repository: string;
  /** Full names of the repositories; "?" for an unknown one. */
  base: string;
  head: string;
  branch: string;
  commit: string;
}

/** A branch of a worker that the service has pushed. */
export interface PushedBranch {
  /** Address of the worker's repository. */
  repository: string;
  branch: string;
  pushed_commit: string;
  lane: string;
  /** How often an event went back to the agent. */
  rounds: number;
}

/** Where an event goes: to the conversation of the branch, to the inbox, or to a conversation of the forge. */
type EventDestination = "branch" | "inbox" | "forge";

/**
 * Decides where a failed check or a review goes. Only the latest commit that the service itself pushed to its branch in the worker's
 * repository returns to the agent, and only `limit` times.
 */
export function chooseDestination(
  change: ForgeChange,
  pushed: PushedBranch,
  limit: number,
): EventDestination {
  const repository = normalizeRepository(change.repository);
  const isSame = repository !== "" && repository === normalizeRepository(pushed.repository) &&
    change.base === change.head && change.branch === pushed.branch &&
    change.commit !== "" && change.commit === pushed.pushed_commit;
  if (!isSame || !pushed.lane.startsWith(SESSION_LANE)) return "forge";
  return pushed.rounds < limit ? "branch" : "inbox";
}

const SESSION_LANE = "session:";

/** Returns the conversation of a branch that has one. */
export function getBranchConversation({ lane }: Pick<PushedBranch, "lane">): string {
  return lane.slice(SESSION_LANE.length);
}

/** Returns host and path of a repository, equal for its addresses of https and ssh. "" for a local path. */
export function normalizeRepository(address: string): string {
  const scp = /^[\w.-]+@([\w.-]+):([^:]+)$/.exec(address);
  const url = scp === null ? URL.parse(address) : null;
  if (scp === null && (url === null || !/^(https?|ssh):$/.test(url.protocol))) return "";
  // An ssh port says nothing about the port of the pages.
  const host = scp?.[1] ?? (url?.protocol === "ssh:" ? url.hostname : url?.host) ?? "";
  const path = (scp?.[2] ?? url?.pathname ?? "").replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  return host === "" || path === "" ? "" : `${host}/${path}`.toLowerCase();
}
