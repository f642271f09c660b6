import type { GatewayKind } from "../../domain/call/vocabulary.ts";
import type { McpServer } from "../../domain/workers/mcp_server.ts";
import type { Permissions } from "../config.ts";
import type { Usage } from "../../domain/work/execution.ts";
import type { Reset } from "./reset.ts";

/** Why an agent failed, by possible remedy. */
export type EngineFailureKind =
  /** The session to resume no longer exists. */
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
  /** The agent cannot do what the settings of the worker require. */
  | "unsupported"
  /** The process ended without a reason. */
  | "crashed";

/** A failure that an engine reports, in its own words. */
export interface EngineFailure {
  kind: EngineFailureKind;
  words: string;
  /** When a rate limit ends, or null if the engine does not report that. */
  reset: Reset | null;
}

/**
 * The span of a usage figure: this run, one step of it, or the whole engine session. Steps are added up. For a session, the run's usage
 * is the difference to the last known figure.
 */
export type UsageSpan = "run" | "step" | "session";

export interface ProviderWindow {
  name: string;
  /** The used part, from 0 to 1. */
  utilization: number;
  resets_at: number | null;
}

export type AgentEvent =
  /** The id of the open session, or null for the requested session. */
  | { kind: "session"; id: string | null }
  /** Text of the agent. A `piece` continues the last one, a `part` starts on a new line, a `whole` replaces all before it. */
  | { kind: "text"; text: string; mode: "piece" | "part" | "whole" }
  | { kind: "tool_start"; name: string; input: string }
  | { kind: "tool_end"; output: string; ok: boolean }
  | { kind: "notice"; text: string }
  | {
    kind: "usage";
    span: UsageSpan;
    usage: Partial<Usage>;
    /** Key of a step. A later figure with the same key replaces this one. */
    key?: string;
  }
  | { kind: "windows"; windows: ProviderWindow[] }
  /** The answer to Dialogue.steer(): whether the agent took the words. */
  | { kind: "steered"; id: string; taken: boolean }
  /** Fails the run, too, unless the agent writes or calls a tool after it. */
  | { kind: "failure"; failure: EngineFailure }
  /** The engine's final event. `text` is the answer, or null if the last text is the answer. */
  | { kind: "done"; ok: boolean; text: string | null; failure: EngineFailure | null };

export type Line = Record<string, unknown>;

/** A tool server for the agent over HTTP (Model Context Protocol). */
export interface ToolServer {
  url: string;
  /** The environment variable that contains the token. */
  tokenVariable: string;
  /** The token, only for files in the run's private directory, never for arguments. */
  token: string;
}

/** An MCP server of a run. `env` and `headers` have the variable of the run in which each value is. */
export type RunServer =
  & { name: string }
  & (
    | { command: readonly string[]; env: Readonly<Record<string, string>> }
    | { url: string; headers: Readonly<Record<string, string>> }
  );

/** An MCP server of the worker for an agent. */
export type WorkerServer =
  & { name: string }
  & (
    /** `program` starts the server. It takes no arguments, and needs the variables of the run. */
    | { program: string }
    /** `headers` has the variable of each value. */
    | { url: string; headers: Readonly<Record<string, string>> }
  );

/** A gateway of the service, through which an agent reaches its model. */
export interface ModelGateway {
  kind: GatewayKind;
  /** The address without a slash at the end. The paths of the provider's API follow. */
  url: string;
  /** The key that the agent sends to the gateway. */
  key: string;
}

/** The variable with the key of the engine's gateway. */
export const GATEWAY_KEY = "SVC_GATEWAY_KEY";

/** The input of an adapter for one turn. */
export interface Order {
  /** Id of the session to resume, or of the new session where the engine accepts one. */
  sessionId: string;
  resume: boolean;
  prompt: string;
  workDir: string;
  /** Directory of the files that the service writes for this run. A box has it read-only. */
  inputDir: string;
  /** Directory of the files that the engine writes for the service. */
  outputDir: string;
  /** Directory of this worker's logins and sessions, or null for the shared default. */
  stateDir: string | null;
  /** Absolute path of `svc`. */
  ctl: string;
  model: string;
  permissions: Permissions;
  /** How long a person has to allow a tool call, in ms. */
  askTimeoutMs: number;
  /** Masks the secrets of the run in a text. */
  mask: (text: string) => string;
  /** engines.<name>.args and the worker's own arguments. They follow the adapter's arguments. */
  extraArgs: readonly string[];
  /** Whether the service and the engine run as root. */
  root: boolean;
  env: Readonly<Record<string, string>>;
  /** The service's tools over MCP; null: none. */
  tools: ToolServer | null;
  /** The MCP servers of the worker. Their values are in `env`. */
  servers: readonly WorkerServer[];
  /** The directory with the skills of the worker and their names; null: none. */
  skills: { dir: string; names: readonly string[] } | null;
  /** The gateway to its model. null: the agent uses its own login. */
  gateway: ModelGateway | null;
  /** JSON Schema of the answer. null allows any text. */
  schema: object | null;
}

export interface EngineFile {
  path: string;
  /** Builds the new text from the present one (null: no file). */
  content: (present: string | null) => string;
  executable?: boolean;
}

/** How to start an agent. The driver writes the prompt to stdin. Tokens go into the environment or a file, never into arguments. */
export interface AgentCommand {
  args: string[];
  /** Variables that the operator may override. */
  env: Record<string, string>;
  /** Variables that override the operator's variables. */
  fixedEnv?: Record<string, string>;
  files?: EngineFile[];
  /** The file where the engine writes its usage when it ends. */
  usageFile?: string;
}

/** The variables that `svc mcp` needs, for agents that do not pass on their whole environment. */
export const BRIDGE_VARIABLES = [
  "PATH",
  "SVC_URL",
  "SVC_TOKEN_FILE",
  "SVC_TOOLS_FILE",
  "SVC_RUN_ID",
] as const;

/** How an agent works in a process that stays open between turns (contract 19). */
export interface OpenMode {
  /**
   * Builds the command without a prompt: the model gets no request before the first turn. The agent's tools read the token from
   * SVC_TOKEN_FILE.
   */
  buildCommand(order: Order): AgentCommand;
  /** Returns whether the process may stay open with these operator arguments. If absent, it always may. */
  acceptsArgs?(args: readonly string[]): boolean;
  /**
   * Whether the agent writes a line before it asks its model. If so, silence means that the model got no request, and another process
   * may run the turn.
   */
  writesBeforeModel: boolean;
  /**
   * Returns whether output between turns shows that the agent works without a request. Then its process ends. If absent, no output does.
   */
  showsWork?(text: string): boolean;
  /** Whether a running turn can take further words. */
  steers?: boolean;
  /** Starts a dialogue with a new process. `order` belongs to its first turn; a spare process gets that later. */
  startDialogue(order: Order, link: Link): Dialogue;
}

/** The stdin of an agent that reads lines. */
export interface Link {
  say: (text: string) => void;
  /** Closes stdin after the texts so far. Does nothing for a process that stays open. */
  close: () => void;
}

/** A dialogue with one process, in lines both ways, turn by turn. */
export interface Dialogue {
  /** Asks an agent without a turn for its session. The event `session` answers. If absent, the agent opens one in any case. */
  prepare?(): void;
  /** Starts a turn; `take` receives events that have no line. */
  turn(order: Order, take: (events: AgentEvent[]) => void): void;
  hear(line: Line): AgentEvent[];
  /** Sends words into the running turn. The event `steered` answers. If absent, the agent cannot take any. */
  steer?(id: string, words: string): void;
  /** Asks the agent to end its turn. The process continues. */
  interrupt(): void;
  /** Called when the process has ended. */
  close(): void;
}

/** Patterns for the stderr of a process that ends without a final event, by kind of failure. */
export type Endings = { [Kind in "unknown_session" | "session_exists" | "setup"]?: RegExp };

/** The file of a session below the engine's state directory. */
interface SessionLog {
  /** Lists the folders that may contain the session's file. */
  folders: (sessionId: string) => string[];
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
  /** Whether the login is in the home directory, whatever the state directory. */
  isLoginInHome?: boolean;
  advice: string;
}

/** The settings of an engine that decide which MCP servers of a worker it can use. */
export interface ServerSettings {
  state: "per_worker" | "shared";
}

interface ForeignSettings {
  path: string;
  /** Whether a file with this text changes nothing. If absent, no text does. */
  isHarmless?: (text: string) => boolean;
}

/** The manifest of one kind of engine. `driver` names the code that runs it. */
export type AnyAdapter = Adapter | ProgramAdapter | BuiltInAdapter;

/** A program without sessions and events (driver: program.ts). */
export interface ProgramAdapter {
  driver: "program";
  kind: string;
  /** The program's name on PATH, or "" if the configuration must name the program. */
  program: string;
}

/** An engine inside this process (built_in.ts runs it). */
export interface BuiltInAdapter {
  driver: "built_in";
  kind: string;
  program: null;
  answer: (instruction: string) => string;
}

/**
 * The manifest of one agent CLI: data, and pure functions that build its command and parse its output (facts, engines 12). agent.ts runs
 * it.
 */
export interface Adapter {
  driver: "agent";
  kind: string;
  /** The program's name on PATH. */
  program: string;
  /** Lines of stderr that are neither logged nor reported as part of a failure. */
  noise?: RegExp;
  /**
   * The tested package and version; null when the configuration may name any program. `release`: the package's version, if it differs.
   */
  tested: { package: string; version: string; release?: string } | null;
  /** Whether the engine reports its usage during the run. */
  reportsLiveUsage?: boolean;
  /** Whether the engine reports its cost in US dollars. */
  reportsCost?: boolean;
  /** Whether its dialogue asks the service before a tool call (`permissions: ask`). */
  asks?: boolean;
  /** Files and folders outside the work directory that would let tool calls through. With `permissions: ask` a run fails if there are any. */
  listForeignSettings?(order: Order): readonly ForeignSettings[];
  /** How to install `<version>`. If absent, with `npm install -g` and the package. */
  install?: string;
  /** Another required program, such as a version of Node. */
  needs?: string;
  /** Whether the service chooses the id of a new session. Absent: the engine does. */
  choosesSessionId?: boolean;
  /** The hosts of the engine's usual provider, which a new box reaches. Absent: the configuration names the provider. */
  providerHosts?: readonly string[];
  login: Login;
  /** The kinds of gateways that the agent can use. If absent, it can use none. */
  gateways?: readonly GatewayKind[];
  /** Further variables of the service's environment that the engine gets. */
  variables: readonly string[];
  /** Returns why the agent cannot use an MCP server of the worker, or null. If absent, it can use every one. */
  findServerFault?(server: McpServer, settings: ServerSettings): string | null;
  /** Whether it reads files with these permissions. If absent, it does with all. */
  readsFiles?(permissions: Permissions): boolean;
  /** The folder of the skills below the directory of Order.skills, as the agent looks for it. If absent, it is that directory. */
  skillsFolder?: string;
  /** Whether the agent finds its skills with these permissions; `stays` when its process stays open. If absent, the prompt lists them. */
  findsSkills?(permissions: Permissions, stays: boolean): boolean;
  /**
   * Flags that an operator's arguments must not contain, because they would change the output, the session or the prompt's way, or make
   * the engine wait for a person.
   */
  reservedFlags: readonly string[];
  buildCommand(order: Order): AgentCommand;
  /** If absent, each process ends after one turn. */
  open?: OpenMode;
  /** Starts a dialogue with a process for one turn. Absent: stdin is the prompt. */
  startDialogue?(order: Order, link: Link): Dialogue;
  parseLine(line: Line): AgentEvent[];
  /** Parses a line of stderr, for engines that report a wait there. */
  parseStderr?(line: string): AgentEvent[];
  endings: Endings;
  /** The engine's session file, for engines that report their provider's windows only there. */
  sessionLog?: SessionLog;
  parseUsageFile?(text: string): AgentEvent[];
}
