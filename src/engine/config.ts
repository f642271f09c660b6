/** What is kept open between turns (contract 19). Times in ms. */
export interface WarmConfig {
  /** How long a process waits for its next turn. */
  keep: number;
  /** How many wait at most; 0: none stays. */
  max: number;
  max_turns: number;
  max_age: number;
  max_rss_mb: number;
}

/** What is set for one engine (contract 7). The configuration checks it. */
export interface EngineConfig {
  kind?: string | undefined;
  /** The program; "" for the adapter's own. */
  command: string;
  args: string[];
  env: Record<string, string>;
  /** Names of variables that its programs get from the service's environment. */
  pass_env: string[];
  model: string;
  permissions: "read" | "edit" | "full";
  state: "per_worker" | "shared";
  /** The share of each of the provider's windows that is kept for work that a person waits for, 0 to 1. */
  reserve: number;
  /** US dollars for a million tokens; without them what the engine itself says counts, if it says anything. */
  prices?: { input: number; output: number } | undefined;
  /** How processes stay open after a turn; absent: as the machine's memory allows (contract 19). */
  warm?: WarmConfig | undefined;
  timeout: number;
  idle_timeout: number;
  /** Words in front of gates and checks, for an engine of kind `command`; absent: none may be set (contract 13). */
  shell?: string[] | undefined;
}

/** The engines of the configuration. */
export interface EngineConfigs {
  defaultName: string;
  configured: Readonly<Record<string, EngineConfig>>;
  /** The defaults for an engine of this kind that the configuration does not name. */
  defaultsFor: (kind: string) => EngineConfig;
}
