// What an operator's arguments may not say, by kind of engine: it would change what we read from the engine, which
// session it takes, how it gets its prompt, or make it wait for a person.
const RESERVED: Record<string, readonly string[]> = {
  claude: [
    "-p",
    "--print",
    "--output-format",
    "--input-format",
    "--session-id",
    "-r",
    "--resume",
    "-c",
    "--continue",
    "--fork-session",
    "--from-pr",
    "--no-session-persistence",
    "--teleport",
    "--cloud",
    "--bg",
    "--background",
    "--desktop",
    "--tmux",
    "--replay-user-messages",
    "-w",
    "--worktree",
  ],
  codex: ["--json", "--color", "-C", "--cd", "--ephemeral", "--worktree"],
  gemini: [
    "-p",
    "--prompt",
    "-i",
    "--prompt-interactive",
    "-o",
    "--output-format",
    "--session-id",
    "-r",
    "--resume",
    "--session-file",
    "--acp",
    "--experimental-acp",
    "-l",
    "--list-extensions",
    "--list-sessions",
    "--delete-session",
    "-w",
    "--worktree",
  ],
  opencode: [
    "--format",
    "-s",
    "--session",
    "-c",
    "--continue",
    "--fork",
    "--attach",
    "--dir",
    "-i",
    "--interactive",
    "--command",
    "--share",
  ],
  qwen: [
    "-p",
    "--prompt",
    "-i",
    "--prompt-interactive",
    "-o",
    "--output-format",
    "--input-format",
    "--session-id",
    "-r",
    "--resume",
    "-c",
    "--continue",
    "--fork-session",
    "--acp",
    "-l",
    "--list-extensions",
    "--chat-recording",
    "--worktree",
    "--input-file",
  ],
  copilot: [
    "-p",
    "--prompt",
    "-i",
    "--interactive",
    "--output-format",
    "--stream",
    "--session-id",
    "--resume",
    "--continue",
    "-n",
    "--name",
    "--acp",
    "--usage-output-file",
    "--remote",
    "--environment-host",
    "-C",
    "-w",
    "--worktree",
    "--connect",
  ],
  goose: [
    "-i",
    "--instructions",
    "-t",
    "--text",
    "--recipe",
    "-n",
    "--name",
    "--session-id",
    "--path",
    "-r",
    "--resume",
    "-s",
    "--interactive",
    "--no-session",
    "--output-format",
    "--explain",
    "--render-recipe",
  ],
};

// They only print something and end.
const TELLING = ["-h", "--help", "-v", "-V", "--version"];

/** The first argument that would break how an engine of this kind is run, or null (contract 3, Worker). */
export function reservedFlag(kind: string, args: readonly string[]): string | null {
  const own = RESERVED[kind];
  if (own === undefined) return null;
  const flags = [...own, ...TELLING];
  return args.find((arg) => arg === "--" || flags.some((flag) => means(arg, flag))) ?? null;
}

function means(arg: string, flag: string): boolean {
  if (!flag.startsWith("--")) return !arg.startsWith("--") && arg.startsWith(flag);
  // Some engines take --outputFormat for --output-format.
  const plain = (text: string) => text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return plain(arg.split("=")[0] ?? "") === flag;
}
