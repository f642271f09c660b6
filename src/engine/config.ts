/** How processes stay open between turns (contract 19). Times in ms. */
export interface WarmConfig {
  keep: number;
  /** Maximum number of idle processes; 0: no process stays open. */
  max: number;
  /** Number of spare processes per worker. If absent, the machine's memory decides (contract 19.5). */
  spare?: number | undefined;
  max_turns: number;
  max_age: number;
  max_rss_mb: number;
}

/** The rights of an agent. `ask`: like `edit`, and a person decides on every other tool call (contract 23). */
export type Permissions = "read" | "edit" | "ask" | "full";

/** The settings of one engine (contract 7). The configuration validates them. */
export interface EngineConfig {
  kind?: string | undefined;
  /** The program; "" for the adapter's default. */
  command: string;
  args: string[];
  env: Record<string, string>;
  /** Variables of the service's environment that its programs get. */
  pass_env: string[];
  model: string;
  permissions: Permissions;
  /** How long a person has to allow a tool call with `permissions: ask`, in ms. */
  ask_timeout: number;
  state: "per_worker" | "shared";
  /** The gateway through which its runs reach their model. If absent, they use the engine's own login. */
  gateway?: string | undefined;
  /** The share of each provider window that is reserved for work that a person waits for, 0 to 1. */
  reserve: number;
  /** US dollars per million tokens. Without prices, the service uses the cost that the engine reports, if any. */
  prices?: { input: number; output: number } | undefined;
  /** Names of engines that can replace this one, best first. */
  fallback: string[];
  /** How long this engine has to be limited before another one replaces it, in ms. */
  fallback_after: number;
  /** How processes stay open after a turn. If absent, the machine's memory decides (contract 19). */
  warm?: WarmConfig | undefined;
  timeout: number;
  idle_timeout: number;
  /**
   * Words of the command that runs a gate or check, for engines of kind `command`. If absent, gates and checks are not allowed (contract
   * 13).
   */
  shell?: string[] | undefined;
}

export interface EngineConfigs {
  defaultName: string;
  configured: Readonly<Record<string, EngineConfig>>;
  /** Returns the defaults for an engine of this kind that the configuration does not name. */
  defaultsFor: (kind: string) => EngineConfig;
}
