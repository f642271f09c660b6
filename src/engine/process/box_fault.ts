// Finds out why a box cannot be set up, and says the way out.
import { findTool } from "./isolation.ts";

export const NO_BOX_USER =
  "svc runs as root, so a box needs another user. Create one (useradd --system svc-box) and set isolation.box.user";
export const NO_BUBBLEWRAP = "bubblewrap is not installed. Install it: apt install bubblewrap";

/** Describes why a box could not be set up, from what bubblewrap wrote, with the way out. */
export function describeBoxFault(text: string): string {
  const words = text.trim().split("\n").slice(-3).join(" | ").slice(-500) || "it ended without a reason";
  const remedy = REMEDIES.find(([pattern]) => pattern.test(words))?.[1];
  return remedy === undefined ? words : `${words}. ${remedy}`;
}

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /[Uu]nknown option/,
    "Install a newer bubblewrap (0.10, or an update of your distribution's): apt install bubblewrap",
  ],
  [
    /namespace|[ug]id map|RTM_NEWADDR|Failed to make \/ slave|pivot_root|mount proc/i,
    "The kernel or a container refuses namespaces. Allow them: sysctl kernel.unprivileged_userns_clone=1, " +
    "kernel.apparmor_restrict_unprivileged_userns=0 and user.max_user_namespaces above 0; a container needs " +
    "more rights (docs/how-to/isolate-agents.md)",
  ],
  [/No space left|Disk quota/i, "Free some space on the disk"],
];

const TRIAL_TIMEOUT_MS = 10_000;

/** Returns why this machine cannot set up a box, or null. Starts a program in a small box. */
export async function findBoxFault({ box }: { box: { user: string } }): Promise<string | null> {
  if (Deno.uid() === 0 && box.user === "") return NO_BOX_USER;
  if (Deno.build.os !== "linux") return "boxes need Linux";
  const bwrap = findTool("bwrap");
  if (bwrap === null) return NO_BUBBLEWRAP;
  const user = Deno.uid() === 0 ? [] : ["--unshare-user"];
  const args = [
    ...[...user, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--cap-drop", "ALL"],
    ...[
      "--ro-bind",
      "/",
      "/",
      "--proc",
      "/proc",
      "--dev",
      "/dev",
      "--bind-fd",
      "0",
      "/tmp",
      "--",
      "/bin/sh",
      "-c",
      "exit 7",
    ],
  ];
  try {
    const { code, stderr } = await new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@" </tmp', "svc-box", bwrap, ...args],
      clearEnv: true,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
      signal: AbortSignal.timeout(TRIAL_TIMEOUT_MS),
    }).output();
    return code === 7 ? null : describeBoxFault(new TextDecoder().decode(stderr));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
