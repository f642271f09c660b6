import { load } from "../src/base/load.ts";
import type { AnyCommand } from "./command.ts";

interface Group {
  about: string;
  load: () => Promise<AnyCommand[] | AnyCommand>;
}

function commands<T>(name: string): Promise<T> {
  return load<T>(`./commands/${name}.ts`, import.meta.url);
}

/** The groups of `svc ctl`. Each is loaded when it is asked for, so that a call pays for its own group only. */
export const GROUPS: Record<string, Group> = {
  worker: {
    about: "Workers: the AI agents that this service runs",
    load: async () => (await commands<typeof import("./commands/worker.ts")>("worker")).workerCommands,
  },
  task: {
    about: "Tasks: what workers should do, now, at a time, or on a schedule",
    load: async () => (await commands<typeof import("./commands/task.ts")>("task")).taskCommands,
  },
  schedule: {
    about: "Schedules: see them, change them, pause them, try them",
    load: async () => (await commands<typeof import("./commands/schedule.ts")>("schedule")).scheduleCommands,
  },
  run: {
    about: "Let a worker do something and print its answer",
    load: async () => (await commands<typeof import("./commands/run.ts")>("run")).runCommand,
  },
  queue: {
    about: "The queue: what waits, is scheduled or runs, of all workers",
    load: async () => (await commands<typeof import("./commands/queue.ts")>("queue")).queueCommands,
  },
  ask: {
    about: "Ask a person a question, from inside a run or a script",
    load: async () => (await commands<typeof import("./commands/ask.ts")>("ask")).askCommand,
  },
  question: {
    about: "Questions that agents ask people: read, answer, cancel",
    load: async () => (await commands<typeof import("./commands/question.ts")>("question")).questionCommands,
  },
  inbox: {
    about:
      "List what needs a person: questions, failures, undelivered replies, limits, paused workers and schedules",
    load: async () => (await commands<typeof import("./commands/inbox.ts")>("inbox")).inboxCommand,
  },
  memory: {
    about: "Memory: what workers are to know, everywhere or in one conversation",
    load: async () => (await commands<typeof import("./commands/memory.ts")>("memory")).memoryCommands,
  },
  session: {
    about: "Sessions: what workers remember of a conversation",
    load: async () => (await commands<typeof import("./commands/session.ts")>("session")).sessionCommands,
  },
  conversation: {
    about: "Conversations of all platforms",
    load: async () =>
      (await commands<typeof import("./commands/conversation.ts")>("conversation")).conversationCommands,
  },
  execution: {
    about: "Executions: one run of a worker each, with its log",
    load: async () =>
      (await commands<typeof import("./commands/execution.ts")>("execution")).executionCommands,
  },
  department: {
    about: "Departments: the tree that workers are organised in",
    load: async () =>
      (await commands<typeof import("./commands/department.ts")>("department")).departmentCommands,
  },
  message: {
    about: "Messages: what came in, what went out, and what became of it",
    load: async () => (await commands<typeof import("./commands/message.ts")>("message")).messageCommands,
  },
  route: {
    about: "Routing: which worker a message would go to",
    load: async () => (await commands<typeof import("./commands/route.ts")>("route")).routeCommands,
  },
  platform: {
    about: "Platforms: where people reach their agents, and who may",
    load: async () => (await commands<typeof import("./commands/platform.ts")>("platform")).platformCommands,
  },
  webhook: {
    about: "Webhooks: events that are sent to an address, signed",
    load: async () => (await commands<typeof import("./commands/webhook.ts")>("webhook")).webhookCommands,
  },
  events: {
    about: "Show what has happened lately, or follow what happens",
    load: async () => (await commands<typeof import("./commands/events.ts")>("events")).eventsCommand,
  },
  engine: {
    about: "Engines: the programs that run as agents, and whether they can be used",
    load: async () => (await commands<typeof import("./commands/engine.ts")>("engine")).engineCommands,
  },
  runner: {
    about: "Runners: other machines that run workers",
    load: async () => (await commands<typeof import("./commands/runner.ts")>("runner")).runnerCommands,
  },
  budget: {
    about: "Budgets: what runs may use",
    load: async () => (await commands<typeof import("./commands/budget.ts")>("budget")).budgetCommands,
  },
  usage: {
    about: "Show what runs used, by worker, department, engine, day or conversation",
    load: async () => (await commands<typeof import("./commands/usage.ts")>("usage")).usageCommand,
  },
  export: {
    about: "Print departments, workers, schedules, budgets and shared memory as a file for apply",
    load: async () => (await commands<typeof import("./commands/fleet.ts")>("fleet")).exportCommand,
  },
  apply: {
    about: "Make departments, workers, schedules, budgets and shared memory as a file says",
    load: async () => (await commands<typeof import("./commands/fleet.ts")>("fleet")).applyCommand,
  },
  diff: {
    about: "Say how the service differs from a file",
    load: async () => (await commands<typeof import("./commands/fleet.ts")>("fleet")).diffCommand,
  },
  config: {
    about: "Configuration: where it is, what holds, and whether it is right",
    load: async () => (await commands<typeof import("./commands/config.ts")>("config")).configCommands,
  },
  system: {
    about: "The service itself: overview, health, password, backup",
    load: async () => (await commands<typeof import("./commands/system.ts")>("system")).systemCommands,
  },
  chat: {
    about: "Send a chat message and print the reply as it comes",
    load: async () => (await commands<typeof import("./commands/chat.ts")>("chat")).chatCommand,
  },
  login: {
    about: "Log in at a service, here or elsewhere, and use it from now on",
    load: async () => (await commands<typeof import("./commands/login.ts")>("login")).loginCommand,
  },
  logout: {
    about: "End the login that is in use, or the one at an address",
    load: async () => (await commands<typeof import("./commands/login.ts")>("login")).logoutCommand,
  },
  whoami: {
    about: "Show who calls, and what they may",
    load: async () => (await commands<typeof import("./commands/login.ts")>("login")).whoamiCommand,
  },
  context: {
    about: "Contexts: the services that you are logged in at, and which one is used",
    load: async () => (await commands<typeof import("./commands/context.ts")>("context")).contextCommands,
  },
  console: {
    about: "Open the console in a browser, logged in",
    load: async () => (await commands<typeof import("./commands/login.ts")>("login")).consoleCommand,
  },
  user: {
    about: "Users: who may log in, and what they may",
    load: async () => (await commands<typeof import("./commands/user.ts")>("user")).userCommands,
  },
  token: {
    about: "Tokens: what programs log in with",
    load: async () => (await commands<typeof import("./commands/token.ts")>("token")).tokenCommands,
  },
  audit: {
    about: "Print who changed what, when, and from where",
    load: async () => (await commands<typeof import("./commands/audit.ts")>("audit")).auditCommand,
  },
};

/** The commands of a group, or the one command that a group is. */
export async function loadGroup(name: string): Promise<AnyCommand[] | AnyCommand> {
  return await (GROUPS[name] as Group).load();
}
