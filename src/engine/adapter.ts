import type { Usage } from "../domain/execution.ts";
import type { Reset } from "./reset.ts";

/** Why an agent failed, by what has to be done about it. */
export type EngineFailureKind =
  /** The session to resume does not exist any more. */
  | "unknown_session"
  /** The id of a new session is taken. */
  | "session_exists"
  /** No login, or a refused one. */
  | "auth"
  | "rate_limited"
  /** The model or its provider failed. */
  | "model"
  /** The engine refused its arguments or configuration. */
  | "setup"
  /** It ended without a reason. */
  | "crashed";

/** What went wrong, in the engine's words. */
export interface EngineFailure {
  kind: EngineFailureKind;
  words: string;
  /** When a rate limit is over; null where the engine does not say. */
  reset: Reset | null;
}

/**
 * Which span a figure counts: this run, one step of it, or the engine's session since it began. Figures of steps are
 * added up; of a session's the difference to the last known one is the run's.
 */
export type UsageSpan = "run" | "step" | "session";

/** What a line of an agent's output means. */
export type AgentEvent =
  /** Which session this is; null: the one that was asked for. */
  | { kind: "session"; id: string | null }
  /** Text of the agent. A `piece` continues the last one, a `part` is a new paragraph, a `whole` is the complete text. */
  | { kind: "text"; text: string; mode: "piece" | "part" | "whole" }
  | { kind: "tool_start"; name: string; input: string }
  | { kind: "tool_end"; output: string; ok: boolean }
  | { kind: "notice"; text: string }
  | { kind: "usage"; span: UsageSpan; usage: Partial<Usage> }
  /** Something failed. The run failed too, unless the agent prints text or calls a tool after it. */
  | { kind: "failure"; failure: EngineFailure }
  /** The engine's final event. `text` is the answer where it is named, else the last text counts. */
  | { kind: "done"; ok: boolean; text: string | null; failure: EngineFailure | null };

/** A parsed line of output. */
export type Line = Record<string, unknown>;

/** A tool server that an agent is offered over HTTP (Model Context Protocol). */
export interface ToolServer {
  url: string;
  /** The variable of the run's environment that holds its token. */
  tokenVariable: string;
  /** The token itself: for files that belong to the run alone, never for arguments. */
  token: string;
}

/** What an adapter makes a command of. */
export interface Order {
  /** The session to start with this id (where the engine takes one), or to resume. */
  sessionId: string;
  resume: boolean;
  prompt: string;
  /** A private directory for files of this run only. */
  runDir: string;
  /** Where the engine keeps logins and sessions of this worker; null: in its usual, shared place. */
  stateDir: string | null;
  /** Absolute path of `svc`. */
  ctl: string;
  model: string;
  permissions: "read" | "edit" | "full";
  /** engines.<name>.args and the worker's own, behind ours. */
  extraArgs: readonly string[];
  /** Whether the service, and so the engine, runs as root. */
  root: boolean;
  /** The engine's own variables, as configured. */
  env: Readonly<Record<string, string>>;
  /** The service's tools over MCP, where they are offered. */
  tools: ToolServer | null;
  /** JSON Schema that the answer has to fit; null: any text. */
  schema: object | null;
}

/** A file that has to be there before the engine starts. */
export interface EngineFile {
  path: string;
  /** Its new text, given the present one; null when there is none. */
  content: (present: string | null) => string;
  /** A program, and not a text. */
  executable?: boolean;
}

/** A program to start as an agent. The prompt goes in by stdin, tokens by environment or file, never by argv. */
export interface AgentCommand {
  args: string[];
  /** Variables that hold unless the operator has set them. */
  env: Record<string, string>;
  /** Variables that hold in any case. */
  fixedEnv: Record<string, string>;
  stdin: string;
  files: EngineFile[];
  /** A file in which the engine leaves its usage at its end. */
  usageFile: string | null;
}

/** How a process without a final event ended. */
export interface SilentEnd {
  code: number;
  /** The end of stderr. */
  stderr: string;
  /** Whether it was started to resume a session. */
  resume: boolean;
}

/** Where an engine looks for its login. */
export interface Login {
  /** Variables of which one is enough. */
  variables: readonly string[];
  /** The engine's usual state directory, below the home. */
  home: string;
  /** Files of which one is enough, below the state directory. */
  files: readonly string[];
  /** The login is in the home, whatever the state directory. */
  sharedLogin?: boolean;
  /** What to do when there is neither. */
  advice: string;
}

/** All that is known of one kind of engine. The driver runs engines of its sort. */
export type AnyAdapter = Adapter | ProgramAdapter | BuiltInAdapter;

/** A program without sessions and events (driver: program.ts). */
export interface ProgramAdapter {
  driver: "program";
  kind: string;
  /** The program's name on PATH; "" where the configuration has to name it. */
  program: string;
}

/** What answers inside of this process (driver: built_in.ts). */
export interface BuiltInAdapter {
  driver: "built_in";
  kind: string;
  program: null;
  answer: (instruction: string) => string;
}

/** One agent CLI as pure functions: how it is started, and what its lines mean (facts, engines 12). */
export interface Adapter {
  driver: "agent";
  kind: string;
  /** The program's name on PATH. */
  program: string;
  /** Lines of stderr that say the same in every run, and nothing to anybody. */
  noise?: RegExp;
  /** The package and version that this was measured with; `release` where the package counts in another way. */
  measured: { package: string; version: string; release?: string };
  /** It takes our id for a new session; else it makes one up. */
  plansSession: boolean;
  login: Login;
  /** Variables of the service's environment that belong to this engine and are passed on. */
  variables: readonly string[];
  /**
   * What an operator's arguments may not have: it would change what we read from the engine, which session it takes or
   * how it gets its prompt, or make it wait for a person.
   */
  reservedFlags: readonly string[];
  command(order: Order): AgentCommand;
  events(line: Line): AgentEvent[];
  /** What a line of stderr means beyond its words, where the engine tells there that it has to wait. */
  complaints?(line: string): AgentEvent[];
  /** Names the failure of a process that ended without a last word. */
  failureOf(end: SilentEnd): EngineFailure;
  /** What the usage file says. */
  usageOf?(text: string): AgentEvent[];
}
