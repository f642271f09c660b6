import { load } from "../../src/base/lazy_import.ts";
import type { AnyCommand } from "./command.ts";

/** The groups of `svc ctl`. A call loads only the module of the called group. */
export const GROUPS: Record<string, { about: string }> = {
  worker: { about: "Manage workers" },
  task: { about: "Create, run and inspect tasks" },
  schedule: { about: "Manage schedules" },
  run: { about: "Run one instruction and print the answer" },
  queue: { about: "List or cancel active tasks of all workers" },
  ask: { about: "Ask a person a question from a run or a script" },
  question: { about: "List, answer and cancel questions of agents" },
  inbox: { about: "List and dismiss what needs a person" },
  memory: { about: "Manage shared and conversation memory" },
  session: { about: "List or clear the context that workers have of a conversation" },
  conversation: { about: "List conversations of all platforms" },
  search: { about: "Search messages, results and memory" },
  execution: { about: "Inspect, cancel and retry executions" },
  department: { about: "Manage departments" },
  message: { about: "Send, list, trace and resend messages" },
  route: { about: "Explain how messages are routed" },
  platform: { about: "Manage chat platforms and who may use them" },
  webhook: { about: "Manage webhooks" },
  events: { about: "Show recent events, or follow new ones" },
  skill: { about: "Manage the skills of workers" },
  mcp: { about: "Manage the MCP servers of workers" },
  engine: { about: "Inspect engines" },
  runner: { about: "Manage runners on other machines" },
  launcher: { about: "List launchers, which start runners on another scheduler, and resume them" },
  budget: { about: "Manage budgets" },
  usage: { about: "Show usage by worker, department, engine, day or conversation" },
  export: { about: "Print the fleet as a file for apply" },
  apply: { about: "Change the fleet to match a file" },
  diff: { about: "Show how the fleet differs from a file" },
  import: { about: "Turn the agents of another program into a fleet file" },
  config: { about: "Inspect and validate the configuration" },
  system: { about: "Inspect and maintain the service" },
  chat: { about: "Send a chat message and print the reply, or open a prompt" },
  login: { about: "Log in to a service and use it for later commands" },
  logout: { about: "Log out of a service" },
  whoami: { about: "Show the current user and scopes" },
  context: { about: "List and select services that you are logged in to" },
  console: { about: "Open the web console in a browser, logged in" },
  user: { about: "Manage users" },
  token: { about: "Manage tokens for programs" },
  device: { about: "List and delete browsers that receive notifications" },
  secret: { about: "Manage secrets, which only granted workers get" },
  audit: { about: "Print every change with its actor and origin" },
};

type Commands = AnyCommand[] | AnyCommand;

const MODULES: Record<string, () => Promise<{ group: Commands } | { groups: Record<string, Commands> }>> = {
  worker: () => load<typeof import("./workers/worker.ts")>("./workers/worker.ts", import.meta.url),
  task: () => load<typeof import("./work/task.ts")>("./work/task.ts", import.meta.url),
  schedule: () => load<typeof import("./work/schedule.ts")>("./work/schedule.ts", import.meta.url),
  run: () => load<typeof import("./work/run.ts")>("./work/run.ts", import.meta.url),
  queue: () => load<typeof import("./work/queue.ts")>("./work/queue.ts", import.meta.url),
  ask: () => load<typeof import("./work/ask.ts")>("./work/ask.ts", import.meta.url),
  question: () => load<typeof import("./work/question.ts")>("./work/question.ts", import.meta.url),
  inbox: () => load<typeof import("./work/inbox.ts")>("./work/inbox.ts", import.meta.url),
  memory: () => load<typeof import("./workers/memory.ts")>("./workers/memory.ts", import.meta.url),
  session: () => load<typeof import("./chat/session.ts")>("./chat/session.ts", import.meta.url),
  conversation: () =>
    load<typeof import("./chat/conversation.ts")>("./chat/conversation.ts", import.meta.url),
  search: () => load<typeof import("./system/search.ts")>("./system/search.ts", import.meta.url),
  execution: () => load<typeof import("./work/execution.ts")>("./work/execution.ts", import.meta.url),
  department: () =>
    load<typeof import("./workers/department.ts")>("./workers/department.ts", import.meta.url),
  message: () => load<typeof import("./chat/message.ts")>("./chat/message.ts", import.meta.url),
  route: () => load<typeof import("./chat/route.ts")>("./chat/route.ts", import.meta.url),
  platform: () => load<typeof import("./chat/platform.ts")>("./chat/platform.ts", import.meta.url),
  webhook: () => load<typeof import("./system/webhook.ts")>("./system/webhook.ts", import.meta.url),
  events: () => load<typeof import("./system/events.ts")>("./system/events.ts", import.meta.url),
  skill: () => load<typeof import("./workers/skill.ts")>("./workers/skill.ts", import.meta.url),
  mcp: () => load<typeof import("./workers/mcp.ts")>("./workers/mcp.ts", import.meta.url),
  engine: () => load<typeof import("./workers/engine.ts")>("./workers/engine.ts", import.meta.url),
  launcher: () => load<typeof import("./workers/launcher.ts")>("./workers/launcher.ts", import.meta.url),
  runner: () => load<typeof import("./workers/runner.ts")>("./workers/runner.ts", import.meta.url),
  budget: () => load<typeof import("./workers/budget.ts")>("./workers/budget.ts", import.meta.url),
  usage: () => load<typeof import("./workers/usage.ts")>("./workers/usage.ts", import.meta.url),
  export: () => load<typeof import("./workers/fleet.ts")>("./workers/fleet.ts", import.meta.url),
  apply: () => load<typeof import("./workers/fleet.ts")>("./workers/fleet.ts", import.meta.url),
  diff: () => load<typeof import("./workers/fleet.ts")>("./workers/fleet.ts", import.meta.url),
  import: () => load<typeof import("./import/import.ts")>("./import/import.ts", import.meta.url),
  config: () => load<typeof import("./system/config.ts")>("./system/config.ts", import.meta.url),
  system: () => load<typeof import("./system/system.ts")>("./system/system.ts", import.meta.url),
  chat: () => load<typeof import("./chat/chat.ts")>("./chat/chat.ts", import.meta.url),
  login: () => load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url),
  logout: () => load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url),
  whoami: () => load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url),
  context: () => load<typeof import("./account/context.ts")>("./account/context.ts", import.meta.url),
  console: () => load<typeof import("./account/login.ts")>("./account/login.ts", import.meta.url),
  user: () => load<typeof import("./account/user.ts")>("./account/user.ts", import.meta.url),
  token: () => load<typeof import("./account/token.ts")>("./account/token.ts", import.meta.url),
  device: () => load<typeof import("./account/device.ts")>("./account/device.ts", import.meta.url),
  secret: () => load<typeof import("./account/secret.ts")>("./account/secret.ts", import.meta.url),
  audit: () => load<typeof import("./system/audit.ts")>("./system/audit.ts", import.meta.url),
};

/** Returns the commands of a group, or its only command. */
export async function loadGroup(name: string): Promise<Commands> {
  const module = await MODULES[name]?.();
  const group = module === undefined || "group" in module ? module?.group : module.groups[name];
  if (group === undefined) throw new Error(`no group ${name}`);
  return group;
}
