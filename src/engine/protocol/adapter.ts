import type { Usage } from "../../domain/work/execution.ts";
import type { Reset } from "./reset.ts";

/** Why an agent failed, by what can be done about it. */
export type EngineFailureKind =
  /** The session to resume does not exist any more. */
  | "unknown_session"
  /** The id for a new session is in use. */
  | "session_exists"
  /** The login is missing or was refused. */
  | "auth"
  | "rate_limited"
  /** The model or its provider failed. */
  | "model"
  /** The engine refused its arguments or its configuration. */
  | "setup"
  /** The process ended without a reason. */
  | "crashed";

/** A failure that an engine reports, in its own words. */
export interface EngineFailure {
  kind: EngineFailureKind;
  words: string;
  /** When a rate limit ends; null where the engine does not say. */
  reset: Reset | null;
}

/**
 * The span of a usage figure: this run, one step of it, or the whole session of the engine. Steps are added up. For a session,
 * the run's usage is the difference to the last known figure.
 */
export type UsageSpan = "run" | "step" | "session";

/** A provider's own quota period. */
export interface ProviderWindow {
  name: string;
  /** The part that is used, from 0 to 1. */
  utilization: number;
  resets_at: number | null;
}

/** An event in an agent's output. */
export type AgentEvent =
  /** The id of the session; null: the requested one. */
  | { kind: "session"; id: string | null }
  /** Text of the agent. A `piece` continues the last one, a `part` starts on a new line, a `whole` replaces all before it. */
  | { kind: "text"; text: string; mode: "piece" | "part" | "whole" }
  | { kind: "tool_start"; name: string; input: string }
  | { kind: "tool_end"; output: string; ok: boolean }
  | { kind: "notice"; text: string }
  | {
    kind: "usage";
    span: UsageSpan;
    usage: Partial<Usage>; /** Of a step: a later figure with this key replaces it. */
    key?: string;
  }
  /** The state of the provider's windows. */
  | { kind: "windows"; windows: ProviderWindow[] }
  /** Something failed. The run has failed as well, unless the agent writes or acts afterwards. */
  | { kind: "failure"; failure: EngineFailure }
  /** The engine's final event. `text` is the answer; null: the answer is the last text. */
  | { kind: "done"; ok: boolean; text: string | null; failure: EngineFailure | null };

/** A parsed line of output. */
export type Line = Record<string, unknown>;

/** A tool server for the agent over HTTP (Model Context Protocol). */
export interface ToolServer {
  url: string;
  /** The variable of the run's environment that holds its token. */
  tokenVariable: string;
  /** The token itself: only for files in the run's private directory, never for arguments. */
  token: string;
}

/** The input of an adapter for one turn. */
export interface Order {
  /** Id of the session to resume, or for the new session where the engine takes one. */
  sessionId: string;
  resume: boolean;
  prompt: string;
  workDir: string;
  /** A private directory for files of this run only. */
  runDir: string;
  /** Where the engine keeps the logins and sessions of this worker; null: in its default place, shared by all. */
  stateDir: string | null;
  /** Absolute path of `svc`. */
  ctl: string;
  model: string;
  permissions: "read" | "edit" | "full";
  /** engines.<name>.args and the worker's own; they follow ours. */
  extraArgs: readonly string[];
  /** Whether the service, and so the engine, runs as root. */
  root: boolean;
  /** The complete environment of the run. */
  env: Readonly<Record<string, string>>;
  /** The service's tools over MCP; null: none. */
  tools: ToolServer | null;
  /** JSON Schema for the answer; null: any text. */
  schema: object | null;
}

/** A file to write before the engine starts. */
export interface EngineFile {
  path: string;
  /** The new text, from the present one (null: there is no file). */
  content: (present: string | null) => string;
  /** Whether it is a program. */
  executable?: boolean;
}

/** How to start an agent. The prompt is passed on stdin, tokens in the environment or a file, never in arguments. */
export interface AgentCommand {
  args: string[];
  /** Variables that the operator's own settings override. */
  env: Record<string, string>;
  /** Variables that nothing overrides. */
  fixedEnv: Record<string, string>;
  stdin: string;
  files: EngineFile[];
  /** The file to which the engine writes its usage when it ends. */
  usageFile: string | null;
}

/** The variables that `svc mcp` needs, for agents that do not pass on their whole environment. */
export const BRIDGE_VARIABLES = ["PATH", "SVC_URL", "SVC_TOKEN_FILE", "SVC_RUN_ID"] as const;

/** How an agent works whose process stays open between turns (contract 19). */
export interface OpenMode {
  /** Builds the command, without a prompt: the model gets no request before the first turn. The agent's tools read the token from SVC_TOKEN_FILE. */
  buildCommand(order: Order): AgentCommand;
  /** Whether the process may stay open with these arguments of an operator; absent: with any. */
  takes?(args: readonly string[]): boolean;
  /** Whether the agent answers before it asks its model: then silence means that the model got no request, and another process may do the turn. */
  speaksFirst: boolean;
  /** Whether output between turns shows that the agent works without a request: then its process ends. Absent: it never does. */
  isWork?(text: string): boolean;
  /** Starts a dialogue with a new process. `order` is that of its first turn. */
  converse(order: Order, link: Link): Dialogue;
}

/** The stdin of an agent that reads lines. */
export interface Link {
  say: (text: string) => void;
  /** Closes stdin after the texts so far. Does nothing to a process that stays open. */
  close: () => void;
}

/** A dialogue with one process, in lines both ways, turn by turn. */
export interface Dialogue {
  /** Starts a turn; `take` gets events that come without a line. */
  turn(order: Order, take: (events: AgentEvent[]) => void): void;
  /** Returns what a line means. */
  hear(line: Line): AgentEvent[];
  /** Ends the turn, and leaves the process. */
  interrupt(): void;
  /** The process has ended. */
  close(): void;
}

/** The end of a process that sent no final event. */
interface SilentEnd {
  code: number;
  /** The end of stderr. */
  stderr: string;
  /** Whether the process had a session to resume. */
  resume: boolean;
}

/** The file that an engine keeps of a session, below its state directory. */
interface SessionLog {
  /** Lists the folders that can have the file of this session. */
  folders: (sessionId: string) => string[];
  /** Whether this is the name of the session's file. */
  isName: (name: string, sessionId: string) => boolean;
  /** Parses the provider's windows at the end of the file. */
  windows: (tail: string) => ProviderWindow[];
}

/** Where an engine looks for its login. */
export interface Login {
  /** Any one of these variables is enough. */
  variables: readonly string[];
  /** The engine's default state directory, below the home directory. */
  home: string;
  /** Any one of these files below the state directory is enough. */
  files: readonly string[];
  /** The login is always in the home directory, whatever the state directory is. */
  sharedLogin?: boolean;
  /** How to log in. */
  advice: string;
}

/** The manifest of one kind of engine. `driver` names the code that runs it. */
export type AnyAdapter = Adapter | ProgramAdapter | BuiltInAdapter;

/** A program without sessions and events (driver: program.ts). */
export interface ProgramAdapter {
  driver: "program";
  kind: string;
  /** The program's name on PATH; "" where the configuration has to name it. */
  program: string;
}

/** An engine inside this process (driver: built_in.ts). */
export interface BuiltInAdapter {
  driver: "built_in";
  kind: string;
  program: null;
  answer: (instruction: string) => string;
}

/** The manifest of one agent CLI: data and pure functions that build its command and parse its output (facts, engines 12; driver: agent.ts). */
export interface Adapter {
  driver: "agent";
  kind: string;
  /** The program's name on PATH. */
  program: string;
  /** Lines of stderr that every run has and that mean nothing. */
  noise?: RegExp;
  /** The tested package and version; null where the configuration can name any program. `release`: the version of the package, if it differs. */
  measured: { package: string; version: string; release?: string } | null;
  /** The usage that the engine reports: `live` during the run, `cost` in US dollars. */
  counts: { live: boolean; cost: boolean };
  /** How to install `<version>`; absent: `npm install -g` with the package. */
  install?: string;
  /** Another program that the engine needs, such as a version of Node. */
  needs?: string;
  /** Whether we choose the id of a new session; if not, the engine does. */
  plansSession: boolean;
  login: Login;
  /** More variables of the service's environment that the engine gets, in addition to those of its login. */
  variables: readonly string[];
  /**
   * Flags that an operator's arguments must not contain: they would change the output that we read, the session or the
   * way of the prompt, or make the engine wait for a person.
   */
  reservedFlags: readonly string[];
  buildCommand(order: Order): AgentCommand;
  /** For engines whose process may stay open between turns. */
  open?: OpenMode;
  /** Starts a dialogue with a process for one turn, for engines that take their prompt in a dialogue. Absent: the prompt is the command's stdin. */
  converse?(order: Order, link: Link): Dialogue;
  parseLine(line: Line): AgentEvent[];
  /** Parses a line of stderr, for engines that report a wait there. */
  parseStderr?(line: string): AgentEvent[];
  /** Returns the failure of a process that ended without a final event. */
  classifyEnd(end: SilentEnd): EngineFailure;
  /** The engine's file of a session, for engines that report their provider's windows only there. */
  sessionLog?: SessionLog;
  /** Parses the usage file. */
  parseUsageFile?(text: string): AgentEvent[];
}
