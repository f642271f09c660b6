import type { AnyCommand } from "./command.ts";

interface Group {
  about: string;
  load: () => Promise<AnyCommand[] | AnyCommand>;
}

/** The groups of `svc ctl`. Each is loaded when it is asked for, so that a call pays for its own group only. */
export const GROUPS: Record<string, Group> = {
  worker: {
    about: "Workers: the AI agents that this service runs",
    load: async () => (await import("./commands/worker.ts")).workerCommands,
  },
  execution: {
    about: "Executions: one run of a worker each, with its log",
    load: async () => (await import("./commands/execution.ts")).executionCommands,
  },
  chat: {
    about: "Send a chat message and print the reply as it comes",
    load: async () => (await import("./commands/chat.ts")).chatCommand,
  },
};

/** The commands of a group, or the one command that a group is. */
export async function loadGroup(name: string): Promise<AnyCommand[] | AnyCommand> {
  return await (GROUPS[name] as Group).load();
}
