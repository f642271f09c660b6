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
  timeout: number;
  idle_timeout: number;
}

/** The engines of the configuration. */
export interface EngineConfigs {
  defaultName: string;
  configured: Readonly<Record<string, EngineConfig>>;
  /** The defaults for an engine of this kind that the configuration does not name. */
  defaultsFor: (kind: string) => EngineConfig;
}
