import { load } from "../../src/base/load.ts";
import type { AnyCommand } from "./command.ts";

interface Group {
  about: string;
  load: () => Promise<AnyCommand[] | AnyCommand>;
}

/** The groups of `svc ctl`. Each is loaded when it is asked for, so that a call pays for its own group only. */
export const GROUPS: Record<string, Group> = {
  worker: {
    about: "Workers: the AI agents that this service runs",
    load: async () =>
      (await load<typeof import("./workers/worker.ts")>("./workers/worker.ts", import.meta.url))
        .workerCommands,
  },
  task: {
    about: "Tasks: what workers should do, now, at a time, or on a schedule",
    load: async () =>
      (await load<typeof import("./work/task.ts")>("./work/task.ts", import.meta.url)).taskCommands,
  },
  schedule: {
    about: "Schedules: see them, change them, pause them, try them",
    load: async () =>
      (await load<typeof import("./work/schedule.ts")>("./work/schedule.ts", import.meta.url))
        .scheduleCommands,
  },
  run: {
    about: "Let a worker do something and print its answer",
    load: async () =>
      (await load<typeof import("./work/run.ts")>("./work/run.ts", import.meta.url)).runCommand,
  },
  queue: {
    about: "The queue: what waits, is scheduled or runs, of all workers",
    load: async () =>
      (await load<typeof import("./work/queue.ts")>("./work/queue.ts", import.meta.url)).queueCommands,
  },
  ask: {
    about: "Ask a person a question, from inside a run or a script",
    load: async () =>
      (await load<typeof import("./work/ask.ts")>("./work/ask.ts", import.meta.url)).askCommand,
  },
  question: {
    about: "Questions that agents ask people: read, answer, cancel",
    load: async () =>
      (await load<typeof import("./work/question.ts")>("./work/question.ts", import.meta.url))
        .questionCommands,
  },
  inbox: {
    about:
      "List what needs a person: questions, failures, undelivered replies, limits, paused workers and schedules",
    load: async () =>
      (await load<typeof import("./work/inbox.ts")>("./work/inbox.ts", import.meta.url)).inboxCommand,
  },
  memory: {
    about: "Memory: what workers are to know, everywhere or in one conversation",
    load: async () =>
      (await load<typeof import("./workers/memory.ts")>("./workers/memory.ts", import.meta.url))
        .memoryCommands,
  },
  session: {
    about: "Sessions: what workers remember of a conversation",
    load: async () =>
      (await load<typeof import("./chat/session.ts")>("./chat/session.ts", import.meta.url)).sessionCommands,
  },
  conversation: {
    about: "Conversations of all platforms",
    load: async () =>
      (await load<typeof import("./chat/conversation.ts")>("./chat/conversation.ts", import.meta.url))
        .conversationCommands,
  },
  execution: {
    about: "Executions: one run of a worker each, with its log",
    load: async () =>
      (await load<typeof import("./work/execution.ts")>("./work/execution.ts", import.meta.url))
        .executionCommands,
  },
  department: {
    about: "Departments: the tree that workers are organised in",
    load: async () =>
      (await load<typeof import("./workers/department.ts")>("./workers/department.ts", import.meta.url))
        .departmentCommands,
  },
  message: {
    about: "Messages: what came in, what went out, and what became of it",
    load: async () =>
      (await load<typeof import("./chat/message.ts")>("./chat/message.ts", import.meta.url)).messageCommands,
  },
  route: {
    about: "Routing: which worker a message would go to",
    load: async () =>
      (await load<typeof import("./chat/route.ts")>("./chat/route.ts", import.meta.url)).routeCommands,
  },
  platform: {
    about: "Platforms: where people reach their agents, and who may",
    load: async () =>
      (await load<typeof import("./chat/platform.ts")>("./chat/platform.ts", import.meta.url))
        .platformCommands,
  },
  webhook: {
    about: "Webhooks: events that are sent to an address, signed",
    load: async () =>
      (await load<typeof import("./system/webhook.ts")>("./system/webhook.ts", import.meta.url))
        .webhookCommands,
  },
  events: {
    about: "Show what has happened lately, or follow what happens",
    load: async () =>
      (await load<typeof import("./system/events.ts")>("./system/events.ts", import.meta.url)).eventsCommand,
  },
  engine: {
    about: "Engines: the programs that run as agents, and whether they can be used",
    load: async () =>
      (await load<typeof import("./workers/engine.ts")>("./workers/engine.ts", import.meta.url))
        .engineCommands,
  },
  runner: {
    about: "Runners: other machines that run workers",
    load: async () =>
      (await load<typeof import("./workers/runner.ts")>("./workers/runner.ts", import.meta.url))
        .runnerCommands,
  },
  budget: {
    about: "Budgets: what runs may use",
    load: async () =>
      (await load<typeof import("./workers/budget.ts")>("./workers/budget.ts", import.meta.url))
        .budgetCommands,
  },
  usage: {
    about: "Show what runs used, by worker, department, engine, day or conversation",
    load: async () =>
      (await load<typeof import("./workers/usage.ts")>("./workers/usage.ts", import.meta.url)).usageCommand,
  },
  export: {
    about: "Print departments, workers, schedules, budgets and shared memory as a file for apply",
    load: async () =>
      (await load<typeof import("./workers/fleet.ts")>("./workers/fleet.ts", import.meta.url)).exportCommand,
  },
  apply: {
    about: "Make departments, workers, schedules, budgets and shared memory as a file says",
    load: async () =>
      (await load<typeof import("./workers/fleet.ts")>("./workers/fleet.ts", import.meta.url)).applyCommand,
  },
  diff: {
    about: "Say how the service differs from a file",
    load: async () =>
      (await load<typeof import("./workers/fleet.ts")>("./workers/fleet.ts", import.meta.url)).diffCommand,
  },
  config: {
    about: "Configuration: where it is, what holds, and whether it is right",
    load: async () =>
      (await load<typeof import("./system/config.ts")>("./system/config.ts", import.meta.url)).configCommands,
  },
  system: {
    about: "The service itself: overview, health, password, backup",
    load: async () =>
      (await load<typeof import("./system/system.ts")>("./system/system.ts", import.meta.url)).systemCommands,
  },
  chat: {
    about: "Send a chat message and print the reply as it comes",
    load: async () =>
      (await load<typeof import("./chat/chat.ts")>("./chat/chat.ts", import.meta.url)).chatCommand,
  },
  login: {
    about: "Log in at a service, here or elsewhere, and use it from now on",
    load: async () =>
      (await load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url)).loginCommand,
  },
  logout: {
    about: "End the login that is in use, or the one at an address",
    load: async () =>
      (await load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url)).logoutCommand,
  },
  whoami: {
    about: "Show who calls, and what they may",
    load: async () =>
      (await load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url)).whoamiCommand,
  },
  context: {
    about: "Contexts: the services that you are logged in at, and which one is used",
    load: async () =>
      (await load<typeof import("./account/context.ts")>("./account/context.ts", import.meta.url))
        .contextCommands,
  },
  console: {
    about: "Open the console in a browser, logged in",
    load: async () =>
      (await load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url)).consoleCommand,
  },
  user: {
    about: "Users: who may log in, and what they may",
    load: async () =>
      (await load<typeof import("./account/user.ts")>("./account/user.ts", import.meta.url)).userCommands,
  },
  token: {
    about: "Tokens: what programs log in with",
    load: async () =>
      (await load<typeof import("./account/token.ts")>("./account/token.ts", import.meta.url)).tokenCommands,
  },
  audit: {
    about: "Print who changed what, when, and from where",
    load: async () =>
      (await load<typeof import("./system/audit.ts")>("./system/audit.ts", import.meta.url)).auditCommand,
  },
};

/** The commands of a group, or the one command that a group is. */
export async function loadGroup(name: string): Promise<AnyCommand[] | AnyCommand> {
  return await (GROUPS[name] as Group).load();
}
