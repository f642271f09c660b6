import { z } from "zod";
import { readSecretReference, SECRET_NAME, SECRET_NAME_ERROR } from "../account/secret.ts";
import { line } from "../call/field.ts";
import { PATH_MAX_BYTES } from "./isolation.ts";

/** Owners of branches in the repository of a worker. */
const TREE_OWNERS = ["conversation", "task"] as const;

/** Whether the service pushes the branches of a worker. */
const PUSH_MODES = ["never", "ask", "auto"] as const;

const REPO_URL_MAX_BYTES = 2_000;
const BRANCH_MAX_BYTES = 200;
// As ssh clients write it: <user>@<host>:<path>.
const SCP_FORM = /^[\w.-]+@[\w.-]+:[^\s:-]\S*$/;
const BRANCH = /^(?![-/.])(?!.*(\.\.|\/\/|\/\.|@\{|\.lock(\/|$)))[^\s~^:?*[\\\p{Cc}]+(?<![/.])$/u;

export const branch = line(BRANCH_MAX_BYTES).refine((value) => BRANCH.test(value), {
  error: "must be the name of a branch, such as main",
});

const url = line(REPO_URL_MAX_BYTES).superRefine((value, context) => {
  const fault = findUrlFault(value, "; set repo.credentials to secret:<name>");
  if (fault !== null) context.addIssue({ code: "custom", message: fault });
});

const path = line(PATH_MAX_BYTES).refine((value) => value.startsWith("/"), {
  error: "must be an absolute path",
});

const credentials = z.string().refine((value) => SECRET_NAME.test(readSecretReference(value) ?? ""), {
  error: `must be secret:<name>, and the name ${SECRET_NAME_ERROR}`,
});

/** The repository of a worker: each conversation or task works on a branch of it. */
export const repoSchema = z.strictObject({
  url: url.optional().meta({ description: "address of https or ssh" }),
  path: path.optional().meta({ description: "a repository on the service's machine, instead of url" }),
  base: branch.optional().meta({ description: "where new branches start; default: the repository's branch" }),
  credentials: credentials.optional().meta({
    description: "secret:<name> with a token, or <user>:<password>; for https",
  }),
  per: z.enum(TREE_OWNERS).default("conversation").meta({ description: "what gets a branch of its own" }),
  push: z.enum(PUSH_MODES).default("never").meta({
    description: "whether its branches are pushed after a run",
  }),
}).superRefine(({ url, path, credentials }, context) => {
  const refuse = (field: string, message: string) =>
    context.addIssue({ code: "custom", path: [field], message });
  if ((url === undefined) === (path === undefined)) refuse("url", "exactly one of url and path is required");
  if (credentials !== undefined && !/^https?:/.test(url ?? "")) {
    refuse("credentials", "work with https only; ssh uses the keys of the service's account");
  }
});
export type Repo = z.output<typeof repoSchema>;

/** Returns the address for git. */
export function getRepoAddress({ url, path }: Repo): string {
  return url ?? path ?? "";
}

/** Returns the secret that a repository needs, or null. */
export function findRepoSecret(repo: Repo | null): string | null {
  return readSecretReference(repo?.credentials ?? "");
}

/** Hides the name of the secret from callers who may not change the repository. */
export function hideRepoSecret(repo: Repo): Repo {
  const { credentials: _credentials, ...shown } = repo;
  return shown;
}

/** Returns why an address is not one of https, ssh or loopback, or null. `instead` says where a password belongs. */
export function findUrlFault(value: string, instead = ""): string | null {
  if (SCP_FORM.test(value)) return null;
  const parsed = URL.parse(value);
  if (parsed === null) return "must be an address such as https://forge.example.org/team/project.git";
  if (parsed.protocol === "ssh:") return parsed.password === "" ? null : "must have no password";
  const isLocal = parsed.hostname === "localhost" || parsed.hostname === "[::1]" ||
    /^127\.\d+\.\d+\.\d+$/.test(parsed.hostname);
  if (parsed.protocol !== "https:" && !(parsed.protocol === "http:" && isLocal)) {
    return "must be https or ssh; http is for addresses of this machine only";
  }
  return parsed.username === "" && parsed.password === ""
    ? null
    : `must have no user and no password${instead}`;
}
